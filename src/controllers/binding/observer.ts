/** Compiles a binding from the controller's caches, subscribes to everything that it depends on, and reports what the watches show of it. */
import type { SecretBinding, Target } from "../../api/binding.ts";
import type { ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import { compile, type World } from "../../pipeline/compile.ts";
import { dependentsFingerprint, watchedFor } from "../../rollout/discover/dependents.ts";
import type { GrantOptions } from "../../sources/grants.ts";
import type { Actor } from "../../targets/actor.ts";
import { competingClaims } from "../../targets/precedence.ts";
import { pathsOf } from "../../targets/release.ts";
import { DONE, type WorkResult } from "../../workqueue/work-queue.ts";
import type { BindingDependencies, Observation, Rollouts } from "./dependencies.ts";
import { observe } from "./observed-state.ts";
import { UncountedGrants } from "./uncounted-grants.ts";

export class Observer {
  readonly #deps: BindingDependencies;
  readonly #rollouts: Pick<Rollouts, "follow" | "look" | "forget">;
  readonly #uncounted: UncountedGrants;
  /** The controller's caches. */
  readonly #world: World;

  constructor(deps: BindingDependencies, rollouts: Pick<Rollouts, "follow" | "look" | "forget">) {
    this.#deps = deps;
    this.#rollouts = rollouts;
    this.#uncounted = new UncountedGrants(deps.events);
    this.#world = {
      ...deps,
      client: deps.sourceReads,
      stepsOf: (binding) => (work) => deps.cpu.steps(binding.metadata.namespace as string, work),
      grantOptions: (binding) => this.#grantOptionsFor(binding),
    };
  }

  /** Returns a result if the watches don't show all of it yet: they requeue the binding when they do. */
  async observe(key: string, binding: SecretBinding, actor: Actor): Promise<Observation | WorkResult> {
    const { bindings, watcher, polls } = this.#deps;
    const schemas = this.#deps.schemas.revision;
    const steps = this.#world.stepsOf(binding);
    const { identity } = actor.as;
    const accountUid = watcher.get(key, { identity: CONTROLLER, ref: actor.account }).version?.uid;
    const compiled = await compile(binding, { identity, accountUid }, this.#world);
    const found = compiled.rollout && (await this.#rollouts.follow(binding, identity, compiled.rollout));
    const competingAt = (target: Target, ref: ObjectRef) =>
      competingClaims(this.#deps, binding, ref, [pathsOf(target)]);
    const lookups = found && [...found.lookups.map((each) => watchedFor(actor.as, each)), ...found.classes];
    const observed = await steps(observe({ watcher, polls, competingAt }, compiled, actor, lookups));
    if (observed.pending) return DONE;
    const resolved = observed.objects.flatMap(({ target, ref }) =>
      ref instanceof Problem ? [] : [{ ref, paths: pathsOf(target) }],
    );
    await bindings.resolved(key, resolved);
    const { sources } = compiled.references;
    const rollout = found && (await steps(this.#rollouts.look(binding, actor.as, found, sources, observed)));
    if (rollout === undefined) this.#rollouts.forget(key);
    else if (rollout.patienceMs > 0) return { retry: "after", ms: rollout.patienceMs };
    const workloads = rollout && (await steps(dependentsFingerprint(rollout.dependents)));
    return { key, binding, actor, compiled, observed, rollout, workloads, schemas };
  }

  #grantOptionsFor(binding: SecretBinding): GrantOptions {
    const { installation, metrics } = this.#deps;
    return {
      limits: installation.limits,
      steps: this.#world.stepsOf(binding),
      limited: (where, index) => {
        metrics.limited("grantsPerNamespace");
        this.#uncounted.report(where, index, installation.limits);
      },
    };
  }

  stop(key: string): void {
    this.#deps.watcher.subscribe(key, []);
    this.#deps.polls.subscribe(key, []);
  }
}
