/** Decides what a rollout does now, from the workloads, the values and the status. Reads what the restart of a workload needs only where one is due. */
import { bindingKey } from "../api/binding.ts";
import { idOf } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { ConcurrencyLimiter } from "./decide/concurrency.ts";
import { withoutDisruptionBudget } from "./decide/disruption-budgets.ts";
import { decideRollout, type RolloutDecision } from "./decide/engine.ts";
import { blockOf, STOPPED } from "./decide/pace.ts";
import { refusalOf } from "./decide/refusal.ts";
import { wrongRestartField } from "./decide/restart-field-schema.ts";
import type { UnsyncedTargets } from "./decide/unsynced-targets.ts";
import { targetsNotObserved } from "./decide/wait-for-targets.ts";
import type { RolloutDependencies } from "./dependencies.ts";
import type { DigestCache, SourceReadings, ValueDigests } from "./digest/values.ts";
import type { RolloutContext } from "./discover/dependents.ts";
import type { RolloutMemory } from "./memory.ts";
import { finishCutOff } from "./restart/recreated-jobs.ts";
import type { Dependent, RolloutBlock } from "./types.ts";

/** When it is looked again whether there is a PodDisruptionBudget. */
const BUDGETS_AGAIN_MS = 30_000;
const NONE: ReadonlySet<never> = new Set();

/** What is known of a binding's sources and targets when its workloads may restart. */
export interface RollInputs {
  read: SourceReadings;
  targets: UnsyncedTargets;
  /**
   * With onFirstSync IfDifferent, at the first sight of the binding: whether a field that is written after the rollout holds another
   * value, or why that can't be known.
   */
  differs: boolean | Problem;
}

/** What is to be done, and the values that it is for. */
export interface Decision {
  decided: RolloutDecision;
  known: ValueDigests;
}

export class Decider {
  readonly #deps: RolloutDependencies;
  readonly #values: Pick<DigestCache, "digests">;
  readonly #slots: Pick<ConcurrencyLimiter, "take">;

  constructor(
    deps: RolloutDependencies,
    values: Pick<DigestCache, "digests">,
    slots: Pick<ConcurrencyLimiter, "take">,
  ) {
    this.#deps = deps;
    this.#values = values;
    this.#slots = slots;
  }

  /** What is to be done now; `finished` where what a crash had cut off was done in place of that. Throws Problem. */
  async decide(rolling: RolloutContext, inputs: RollInputs, memory: RolloutMemory): Promise<Decision | "finished"> {
    const { binding, spec, wrong, references, dependents, sources, sourceRevisions } = rolling;
    const { read, targets, differs } = inputs;
    const { schemas } = this.#deps;
    if (await finishCutOff(this.#deps, rolling, binding.status?.rollout, memory.settled)) return "finished";
    if (dependents.problem) throw dependents.problem;
    const { generation } = binding.metadata;
    const wrongField =
      memory.checked === generation ? undefined : await wrongRestartField(schemas, references.lookups, spec);
    if (wrongField) throw wrongField;
    memory.checked = generation;
    const [key, before] = [bindingKey(binding), memory.before(binding)];
    if (before === undefined && differs instanceof Problem) throw differs;
    const known = await this.#values.digests(key, sourceRevisions, dependents.used, sources, read, before);
    const blocked = targets.everywhere ?? known.sourceMismatch ?? wrong;
    // Where there are targets, the values are there once all of those hold them.
    if (blocked !== undefined || targets.namespaces.size > 0) memory.setReady(false);
    else if (binding.spec.targets.length === 0) memory.setReady(true, memory.observed?.since);
    else if (spec.waitForTargets === undefined) memory.setReady(true);
    const decided = this.#decideBy(rolling, inputs, memory, known, blocked);
    if (decided.stamps.length === 0) return { decided, known };
    return { decided: await this.#checked(rolling, inputs, memory, known, decided), known };
  }

  /** Where something is to be restarted, only now it is looked at what that needs. Throws Problem. */
  async #checked(
    rolling: RolloutContext,
    inputs: RollInputs,
    memory: RolloutMemory,
    known: ValueDigests,
    decided: RolloutDecision,
  ): Promise<RolloutDecision> {
    const { dependents, identity, targets, spec } = rolling;
    const { client } = this.#deps;
    if (spec.waitForTargets !== undefined) {
      const hold = await targetsNotObserved(client, identity, targets, spec.waitForTargets);
      memory.setReady(hold === undefined);
      if (hold !== undefined) return this.#decideBy(rolling, inputs, memory, known, hold);
    }
    if (!spec.requireDisruptionBudget) return decided;
    const { without, unknown } = await withoutDisruptionBudget(client, identity, dependents.all);
    if (without.length === 0 && unknown.size === 0) return decided;
    const held = [...unknown].map(([namespace, { message }]) => [namespace, message] as const);
    const namespaces = new Map([...inputs.targets.namespaces, ...held]);
    const some = { ...inputs, targets: { ...inputs.targets, namespaces } };
    const checked = this.#decideBy(rolling, some, memory, known, undefined, new Set(without));
    // PodDisruptionBudgets are not watched.
    return { ...checked, requeueAfterMs: Math.min(checked.requeueAfterMs ?? BUDGETS_AGAIN_MS, BUDGETS_AGAIN_MS) };
  }

  /** Throws Problem. */
  #decideBy(
    { binding, spec, references, dependents }: RolloutContext,
    { targets, differs }: RollInputs,
    memory: RolloutMemory,
    { keyId, digests, former }: ValueDigests,
    blocked: RolloutBlock | undefined,
    without: ReadonlySet<Dependent> = NONE,
  ): RolloutDecision {
    const key = bindingKey(binding);
    const before = memory.before(binding);
    const { installation } = this.#deps;
    const now = Date.now();
    const held = new Map([
      ...targets.namespaces,
      ...dependents.unknown.map(({ namespace, problem }) => [namespace, problem.message] as const),
    ]);
    return decideRollout({
      now,
      binding: binding.metadata.uid,
      steps: references.steps,
      dependents: dependents.all,
      before,
      key: keyId,
      digests,
      ...(before !== undefined && before.digestKeyID !== keyId && { rekeyed: { former } }),
      rollFirst: spec.onFirstSync === "Rollout" || (before === undefined && differs === true),
      unknown: dependents.unknown,
      maxConcurrent: spec.maxConcurrent ?? Number.POSITIVE_INFINITY,
      block: (pending, last) =>
        blocked ?? (installation.rollouts.suspend ? STOPPED : undefined) ?? blockOf(spec, pending, last, now),
      refusal: (dependent) =>
        held.get(dependent.ref.namespace ?? "") ?? refusalOf(spec, dependent, without.has(dependent)),
      wasRefused: ({ version }) => memory.refused.has(version.uid),
      take: (dependent) => this.#slots.take(key, idOf(dependent.ref), dependent.ref.namespace ?? ""),
      isSeen: (dependent) => memory.isSeen(dependent),
    });
  }
}
