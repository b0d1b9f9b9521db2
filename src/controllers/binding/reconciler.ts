/**
 * Reconciles one SecretBinding: observe, read sources, release removed targets, sync targets, roll out, report. It depends on the state of the
 * cluster alone, never on the event that requeued the binding.
 */
import { isAfterRollout, type SecretBinding } from "../../api/binding.ts";
import { untilStalled } from "../../api/progress.ts";
import { isRefreshRequested } from "../../api/refresh.ts";
import type { RolloutStatus } from "../../api/rollout.ts";
import { isStub } from "../../api/stub.ts";
import type { Verdict } from "../../api/verdict.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { readValues } from "../../pipeline/compile.ts";
import { unsyncedTargets } from "../../rollout/decide/wait-for-targets.ts";
import type { RolloutResult } from "../../rollout/status.ts";
import type { Actor } from "../../targets/actor.ts";
import { holdsOtherValues } from "../../targets/compare.ts";
import type { WriteContext } from "../../targets/dependencies.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import { PlanCache } from "../../targets/plan-cache.ts";
import { targetsOf } from "../../targets/records.ts";
import { releaseRemovedTargets } from "../../targets/release.ts";
import { BACKOFF, DONE, type WorkResult } from "../../workqueue/work-queue.ts";
import { StatusTooLarge, untilTooLarge } from "../status-writer.ts";
import { type BindingStatusWriter, bindingStatusWriter, StatusInProgress } from "./binding-status-writer.ts";
import { refused, SUSPENDED } from "./conditions.ts";
import type { BindingDependencies, Inputs, Observation, Rollouts } from "./dependencies.ts";
import { Observer } from "./observer.ts";
import { PermissionAdvice } from "./permission-advice.ts";
import { protectsSecrets } from "./protected-tokens.ts";
import { Reporter } from "./reporter.ts";
import { orWhenStalled } from "./requeue.ts";
import { ResultCache } from "./result-cache.ts";
import { rolloutPending, syncTargets } from "./target-sync.ts";
import { UnprocessedBindings } from "./unprocessed.ts";

/** A watch requeues the binding when it is in sync. This is for a watch that lost its sync for a moment. */
const SOON: WorkResult = { retry: "after", ms: 1_000 };

export class Reconciler {
  readonly #deps: BindingDependencies;
  readonly #rollouts: Rollouts;
  readonly results = new ResultCache();
  readonly #status: BindingStatusWriter;
  readonly #permissions: PermissionAdvice;
  readonly #observer: Observer;
  readonly #reporter: Reporter;
  readonly #unprocessed: UnprocessedBindings;

  constructor(deps: BindingDependencies, rollouts: Rollouts) {
    this.#deps = deps;
    this.#rollouts = rollouts;
    this.#status = bindingStatusWriter(deps);
    this.#permissions = new PermissionAdvice(deps);
    this.#observer = new Observer(deps, rollouts);
    this.#reporter = new Reporter(deps, this.#status, this.#permissions, this.results);
    this.#unprocessed = new UnprocessedBindings(deps, this.#status, {
      forget: (key) => this.#forgetResults(key),
      stop: (key) => this.#stop(key),
    });
  }

  /** Records a binding that no longer exists. The caller requeues its key. */
  gone(binding: SecretBinding): void {
    this.#unprocessed.deletions.gone(binding);
  }

  /** A binding that no longer exists, and whose writes are not released yet. */
  lastOf(key: string): SecretBinding | undefined {
    return this.#unprocessed.deletions.lastOf(key);
  }

  async reconcile(key: string): Promise<WorkResult> {
    if (await this.#unprocessed.deletions.releaseGone(key)) {
      this.#deps.bindings.released(key);
      return this.#attempt(key);
    }
    // A former binding of this name that is not released yet may own the fields of this one.
    this.results.forget(key);
    await this.#attempt(key);
    this.results.forget(key);
    return BACKOFF;
  }

  /** If there is no room for the status, a change of the binding or its sources requeues it. */
  async #attempt(key: string): Promise<WorkResult> {
    try {
      return await this.#reconcile(key);
    } catch (error) {
      if (!(error instanceof StatusTooLarge)) throw error;
      this.results.forget(key);
      const binding = this.#deps.bindings.get(key);
      if (binding === undefined || isStub(binding)) return DONE;
      return untilTooLarge(this.#unprocessed.report(binding, refused(error.problem)));
    }
  }

  async #reconcile(key: string): Promise<WorkResult> {
    const binding = this.#deps.bindings.get(key);
    if (binding === undefined) return this.#forget(key);
    if (isStub(binding)) return this.#unprocessed.holdStub(key, binding);
    if (binding.metadata.deletionTimestamp !== undefined) return this.#unprocessed.delete(key, binding);
    const actor = this.#actorOf(binding);
    if (actor === undefined) return DONE;
    if ("reason" in actor) return this.#unprocessed.hold(key, binding, actor);

    const observation = await this.#observer.observe(key, binding, actor);
    if ("retry" in observation) return observation;
    const upToDate = this.#upToDate(observation);
    if (upToDate !== undefined) return upToDate;

    const account = await this.#permissions.account(actor, observation.observed.account);
    const inputs = await this.#readSources({ ...observation, observed: { ...observation.observed, account } });
    const { context, targets } = inputs;
    const released = await releaseRemovedTargets(context, targets.recorded);
    const before = await syncTargets(inputs, targets.before, [...targets.after, ...released]);
    const rollout = await this.#rollOut(inputs, before);
    if (targets.after.length === 0) return this.#reporter.report(inputs, { written: before, released, rollout });
    // It is not known yet whether all workloads have rolled out, so the status of these targets stays.
    if (rollout !== undefined && rollout.workloads === undefined) return SOON;
    const blocked = rolloutPending(rollout, inputs.sources);
    const after = await syncTargets(inputs, targets.after, [...before, ...released], blocked);
    return this.#reporter.report(inputs, { written: [...before, ...after], released, rollout });
  }

  /** The account that Inlay impersonates for the binding, or why Inlay does not process it. */
  #actorOf(binding: SecretBinding): Actor | Verdict | undefined {
    const closed = this.#deps.installation.closedNamespace(binding.metadata.namespace);
    if (closed !== undefined) return refused(closed);
    if (binding.spec.suspend) return SUSPENDED;
    const actor = this.#deps.actorOf(binding);
    return actor instanceof Problem ? refused(actor) : actor;
  }

  /** Returns when to reconcile again, if nothing is left to do. */
  #upToDate({ key, binding, observed, workloads }: Observation): WorkResult | undefined {
    if (isRefreshRequested(binding)) this.#expire(key, binding);
    // A rollout may have a problem while nothing is left to do.
    const now = new Date();
    const isDue = untilStalled(binding.status, now) === 0;
    if (!this.results.isUpToDate(key, observed, binding, workloads) || isDue) return undefined;
    return orWhenStalled(DONE, binding.status, now);
  }

  /** Reads each source once, and only if a target, the rollout or protection needs it. */
  async #readSources(observation: Observation): Promise<Inputs> {
    const { cpu, client, versions } = this.#deps;
    const { key, binding, actor, compiled, observed, rollout } = observation;
    const { namespace = "" } = binding.metadata;
    const targets = targetsOf(binding, observed);
    const all = [...targets.before, ...targets.after];
    const known = await cpu.steps(namespace, this.results.resultsOf(key, observed, all));
    for (const each of all)
      if (!known.has(each) && !(each.ref instanceof Problem)) versions.expectWrite(each.ref.resource);
    const isForMore = (rollout !== undefined && this.#rollouts.needsValues(rollout)) || protectsSecrets(binding);
    const needs = isForMore ? "more" : known.size < all.length ? "targets" : "nothing";
    const { sources, ...values } = await readValues(compiled, client, observed, needs);
    const context: WriteContext = {
      ...values,
      deps: this.#deps,
      binding,
      identity: actor.as.identity,
      account: observed.account,
      retained: [],
      seenVersion: observed.seenVersion,
      lastApplied: (target, ref) => {
        const { version: last, values: applied } = this.results.lastApplied(key, ref) ?? {};
        const version = last && observed.unchanged(target, ref, last);
        return version && applied !== undefined ? { version, values: applied } : undefined;
      },
      sourceUids: observed.sourceUids,
      planning: new PlanCache(cpu, namespace),
    };
    return { observation, status: new StatusInProgress(this.#status, binding), targets, known, sources, context };
  }

  /** `written` are the outcomes of the targets that are written before it. */
  async #rollOut(inputs: Inputs, written: readonly TargetOutcome[]): Promise<RolloutResult | undefined> {
    const { observation, status, sources, context, targets } = inputs;
    const { binding, observed, rollout } = observation;
    if (rollout === undefined) return undefined;
    // A removed target that could not be released does not hold workloads back.
    const tried = [
      ...targets.before.map(({ target }, at) => ({ target, ...written[at]?.record, problem: written[at]?.problem })),
      ...observed.unresolved.filter(({ target }) => !isAfterRollout(target)),
    ];
    const isCompared = binding.spec.rollout?.onFirstSync === "IfDifferent" && binding.status?.rollout === undefined;
    const of = {
      read: { sources, sourceMismatch: context.sourceMismatch },
      targets: unsyncedTargets(binding, context.account, tried),
      differs: isCompared && (await holdsOtherValues(context, targets.after, sources)),
      written: written.flatMap(({ applied }) => applied ?? []),
    };
    return this.#rollouts.roll(rollout, of, (rollout) => status.write({ ...status.stored.status, rollout }));
  }

  /** A user requests that nothing that is remembered counts. */
  #expire(key: string, { metadata }: SecretBinding): void {
    this.results.expire(key);
    this.#deps.contention.forget(`${metadata.uid}/`);
    this.#deps.rejections.forget(`${metadata.uid}/`);
  }

  /** Ends everything that goes on for a binding that still exists. Returns the status of its rollout that is not written yet. */
  #stop(key: string): RolloutStatus | undefined {
    this.#reporter.forget(key);
    this.#observer.stop(key);
    return this.#forgetResults(key);
  }

  #forgetResults(key: string): RolloutStatus | undefined {
    this.results.forget(key);
    return this.#rollouts.forget(key);
  }

  #forget(key: string): WorkResult {
    this.#stop(key);
    return DONE;
  }
}
