/**
 * Reconciles one SecretBinding: gate, observe, read sources, release removed targets, sync targets, roll out, report. It depends
 * on the state of the cluster alone, never on the event that requeued the binding.
 */
import {
  FINALIZER,
  isAfterRollout,
  type SecretBinding,
  type Status,
  type StoredBinding,
  type Target,
} from "../../api/binding.ts";
import { isStalledAtOnce, untilStalled } from "../../api/progress.ts";
import { isRefreshRequested } from "../../api/refresh.ts";
import { asRecorded } from "../../api/status-records.ts";
import { isStub } from "../../api/stub.ts";
import type { Verdict } from "../../api/verdict.ts";
import type { KubeObject, ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../../apimachinery/resources.ts";
import { attempt } from "../../kube/access-error.ts";
import { listedAsController } from "../../kube/get.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import { compile, readValues, type World } from "../../pipeline/compile.ts";
import { unsyncedTargets } from "../../rollout/decide/unsynced-targets.ts";
import { dependentsFingerprint, watchedFor } from "../../rollout/discover/dependents.ts";
import type { RolloutController } from "../../rollout/rollout-controller.ts";
import { type RolloutResult, rolloutOf } from "../../rollout/status.ts";
import { copiedSources, type GrantOptions } from "../../sources/grants.ts";
import { TooManyKeys } from "../../sources/many-keys.ts";
import type { Actor } from "../../targets/actor.ts";
import { holdsOtherValues } from "../../targets/compare.ts";
import type { WriteContext } from "../../targets/dependencies.ts";
import type { TargetOutcome } from "../../targets/outcome.ts";
import { PlanCache } from "../../targets/plan-cache.ts";
import { competingClaims } from "../../targets/precedence.ts";
import { targetsOf } from "../../targets/records.ts";
import { pathsOf, releaseDeletedBinding, releaseRemovedTargets } from "../../targets/release.ts";
import { notesOn } from "../../targets/shared-values.ts";
import type { WorkResult } from "../../workqueue/work-queue.ts";
import { StatusTooLarge, untilTooLarge } from "../status-writer.ts";
import { ownsAnything } from "./announce.ts";
import { type BindingStatusWriter, bindingStatusWriter, StatusInProgress } from "./binding-status-writer.ts";
import { heldStatus, isSameStatus, newlyReadable, refused, SUSPENDED, statusOf } from "./conditions.ts";
import { Deletions } from "./deletions.ts";
import type { BindingDependencies, Inputs, Observation } from "./dependencies.ts";
import { observe } from "./observed-state.ts";
import { PermissionAdvice } from "./permission-advice.ts";
import { protectedTokens, protectsSecrets } from "./protected-tokens.ts";
import { orWhenStalled, requeueResult } from "./requeue.ts";
import { ResultCache } from "./result-cache.ts";
import { rolloutPending, syncTargets } from "./target-sync.ts";
import { tooLarge } from "./too-large.ts";
import { UncountedGrants } from "./uncounted-grants.ts";

type Rollouts = Pick<RolloutController, "follow" | "look" | "needsValues" | "roll" | "forget">;

const DONE: WorkResult = { retry: "never" };
const BACKOFF: WorkResult = { retry: "backoff" };
/** A watch requeues the binding when it is in sync. This is for a watch that lost its sync for a moment. */
const SOON: WorkResult = { retry: "after", ms: 1_000 };
/** While another large binding of the namespace is in memory. Thousands may wait for it. */
const whileReading = (namespace: string): WorkResult => ({ retry: "after", ms: 250, rateLimitGroup: namespace });

const AT_ONCE: WorkResult = { retry: "after", ms: 0 };
/** The API server publishes the schema of a changed CRD up to a second later. */
const PUBLISHED_WITHIN_MS = 1_500;
const OF_SCHEMAS: readonly string[] = ["UnknownField", "TypeMismatch", "InvalidValue"];

const isHeld = ({ metadata }: SecretBinding): boolean => metadata.finalizers?.includes(FINALIZER) === true;

export class Reconciler {
  readonly #deps: BindingDependencies;
  readonly #rollouts: Rollouts;
  readonly results = new ResultCache();
  readonly #deletions = new Deletions((...deletion) => releaseDeletedBinding(this.#deps, ...deletion));
  readonly #status: BindingStatusWriter;
  readonly #permissions: PermissionAdvice;
  readonly #uncounted: UncountedGrants;
  /** The controller's caches. */
  readonly #world: World;
  /** Since when a newer schema may make a binding right, in ms. */
  readonly #doubts = new Map<string, number>();
  /** The namespaces of which a whole binding is in memory for a moment. */
  readonly #reading = new Set<string>();

  constructor(deps: BindingDependencies, rollouts: Rollouts) {
    this.#deps = deps;
    this.#rollouts = rollouts;
    this.#status = bindingStatusWriter(deps);
    this.#permissions = new PermissionAdvice(deps);
    this.#uncounted = new UncountedGrants(deps.events);
    const { cpu, sourceReads: client } = deps;
    this.#world = {
      ...deps,
      client,
      stepsOf: (binding) => (work) => cpu.steps(binding.metadata.namespace as string, work),
      grantOptions: (binding) => this.#grantOptionsFor(binding),
    };
  }

  /** Records a binding that no longer exists. The caller requeues its key. */
  gone(binding: SecretBinding): void {
    this.#deletions.gone(binding);
  }

  /** A binding that no longer exists, and whose writes are not released yet. */
  lastOf(key: string): SecretBinding | undefined {
    return this.#deletions.lastOf(key);
  }

  async reconcile(key: string): Promise<WorkResult> {
    if (await this.#deletions.releaseGone(key)) {
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
      return untilTooLarge(this.#reportVerdict(binding, refused(error.problem)));
    }
  }

  async #reconcile(key: string): Promise<WorkResult> {
    const binding = this.#deps.bindings.get(key);
    if (binding === undefined) return this.#forget(key);
    if (isStub(binding)) return this.#reconcileStub(key, binding);
    if (binding.metadata.deletionTimestamp !== undefined) return this.#delete(key, binding);
    const gate = this.#gate(binding);
    if (gate === undefined) return DONE;
    if ("reason" in gate) return this.#hold(key, binding, gate);

    const seen = await this.#observe(key, binding, gate);
    if ("retry" in seen) return seen;
    const { observed, workloads } = seen;
    if (isRefreshRequested(binding)) this.#expire(key, binding);
    // A rollout may have a problem while nothing is left to do.
    const now = new Date();
    const isDue = untilStalled(binding.status, now) === 0;
    if (this.results.isUpToDate(key, observed, binding, workloads) && !isDue)
      return orWhenStalled(DONE, binding.status, now);
    const account = await this.#permissions.account(gate, observed.account);
    const observation = { ...seen, observed: { ...observed, account } };

    const inputs = await this.#readSources(observation);
    const released = await releaseRemovedTargets(inputs.context, inputs.targets.recorded);
    const { before, after } = inputs.targets;
    const written = await syncTargets(observation, inputs, before, [...after, ...released]);
    const rollout = await this.#rollOut(observation, inputs, written);
    if (after.length === 0) return this.#report(observation, inputs, written, released, rollout);
    // It is not known yet whether all workloads have rolled out, so the status of these targets stays.
    if (rollout !== undefined && rollout.workloads === undefined) return SOON;
    const blocked = rolloutPending(rollout, inputs.sources);
    const others = [...written, ...released];
    const last = await syncTargets(observation, inputs, after, others, blocked);
    return this.#report(observation, inputs, [...written, ...last], released, rollout);
  }

  /** For a binding that was too large to be kept whole. It is read whole for each thing that needs more than the stub. */
  async #reconcileStub(key: string, stub: SecretBinding): Promise<WorkResult> {
    const { bindings, installation, incomplete } = this.#deps;
    const isDeleted = stub.metadata.deletionTimestamp !== undefined;
    const excess = bindings.excessOf(key);
    if (isDeleted && !isHeld(stub)) return DONE;
    if (isDeleted || excess === undefined)
      return this.#withWhole(stub, async (whole) => {
        if (isDeleted) return this.#delete(key, stub, asRecorded(whole));
        // The watch requeues a binding that has changed since.
        return bindings.restore(whole) ? AT_ONCE : DONE;
      });
    this.#stop(key);
    const verdict = refused(tooLarge(excess, installation.limits));
    const now = new Date();
    const isReported = isSameStatus(stub.status, heldStatus(stub, verdict, now, undefined, incomplete(stub)));
    if (isReported) return orWhenStalled(DONE, stub.status, now);
    return this.#withWhole(stub, async (whole) => {
      const result = await this.#reportVerdict(asRecorded(whole), verdict);
      this.#deps.metrics.limited(excess.limit);
      return result;
    });
  }

  /** Reads the binding of a stub. So at most one whole binding of each namespace is in memory beside those that are kept. */
  async #withWhole(
    { metadata }: SecretBinding,
    work: (whole: StoredBinding) => Promise<WorkResult>,
  ): Promise<WorkResult> {
    const { namespace = "", name, uid } = metadata;
    if (this.#reading.has(namespace)) return whileReading(namespace);
    this.#reading.add(namespace);
    try {
      const ref = { resource: SECRET_BINDINGS, namespace, name };
      const whole = await listedAsController(this.#deps.client, ref);
      return whole?.metadata.uid === uid ? await work(whole as KubeObject & StoredBinding) : DONE;
    } finally {
      this.#reading.delete(namespace);
    }
  }

  async #reportVerdict(binding: SecretBinding, verdict: Verdict): Promise<WorkResult> {
    const now = new Date();
    const status = heldStatus(binding, verdict, now, undefined, this.#deps.incomplete(binding));
    await this.#status.writeConditions(binding, status);
    this.#status.recordEvent(binding, status);
    return orWhenStalled(DONE, status, now);
  }

  /** The account that Inlay impersonates for the binding, or why Inlay does not process it. */
  #gate(binding: SecretBinding): Actor | Verdict | undefined {
    const closed = this.#deps.installation.closedNamespace(binding.metadata.namespace);
    if (closed !== undefined) return refused(closed);
    if (binding.spec.suspend) return SUSPENDED;
    const actor = this.#deps.actorOf(binding);
    return actor instanceof Problem ? refused(actor) : actor;
  }

  /** Subscribes to everything that the binding depends on. Returns a result if the watches don't show all of it yet. */
  async #observe(key: string, binding: SecretBinding, actor: Actor): Promise<Observation | WorkResult> {
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
    // The watch requeues the binding when it is in sync.
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
    const status = new StatusInProgress(this.#status, binding);
    return { key, binding, status, actor, compiled, observed, rollout, workloads, schemas };
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

  /** Reads each source once, and only if a target, the rollout or protection needs it. */
  async #readSources({ key, binding, actor, compiled, observed, rollout }: Observation): Promise<Inputs> {
    const { cpu, client, versions } = this.#deps;
    const targets = targetsOf(binding, observed);
    const all = [...targets.before, ...targets.after];
    const known = await this.#world.stepsOf(binding)(this.results.resultsOf(key, observed, all));
    for (const each of all)
      if (!known.has(each) && !(each.ref instanceof Problem)) versions.expectWrite(each.ref.resource);
    const isForMore = (rollout !== undefined && this.#rollouts.needsValues(rollout)) || protectsSecrets(binding);
    const needs = isForMore ? "more" : known.size < all.length ? "targets" : "nothing";
    const { sources, ...values } = await readValues(compiled, client, observed, needs);
    const { account, seenVersion, sourceUids } = observed;
    const context: WriteContext = {
      ...values,
      deps: this.#deps,
      binding,
      identity: actor.as.identity,
      account,
      retained: [],
      seenVersion,
      lastApplied: (target, ref) => {
        const { version: last, values: applied } = this.results.lastApplied(key, ref) ?? {};
        const version = last && observed.unchanged(target, ref, last);
        return version && applied !== undefined ? { version, values: applied } : undefined;
      },
      sourceUids,
      planning: new PlanCache(cpu, binding.metadata.namespace as string),
    };
    return { targets, known, sources, context };
  }

  async #rollOut(
    observation: Observation,
    { sources, context, targets }: Inputs,
    written: readonly TargetOutcome[],
  ): Promise<RolloutResult | undefined> {
    if (observation.rollout === undefined) return undefined;
    const { binding, observed } = observation;
    // A removed target that could not be released does not hold workloads back.
    const tried = [
      ...targets.before.map(({ target }, at) => ({ target, ...written[at]?.record, problem: written[at]?.problem })),
      ...observed.unresolved.filter(({ target }) => !isAfterRollout(target)),
    ];
    const { spec, status } = binding;
    const isCompared = spec.rollout?.onFirstSync === "IfDifferent" && status?.rollout === undefined;
    const inputs = {
      read: { sources, sourceMismatch: context.sourceMismatch },
      targets: unsyncedTargets(binding, context.account, tried),
      differs: isCompared && (await holdsOtherValues(context, targets.after, sources)),
      written: written.flatMap(({ applied }) => applied ?? []),
    };
    const { status: inProgress } = observation;
    return this.#rollouts.roll(observation.rollout, inputs, (rollout) =>
      inProgress.write({ ...inProgress.stored.status, rollout }),
    );
  }

  /** Writes the status, records events, remembers the results, and returns when to reconcile again. */
  async #report(
    observation: Observation,
    { targets, sources, context }: Inputs,
    synced: readonly TargetOutcome[],
    released: readonly TargetOutcome[],
    rollout: RolloutResult | undefined,
  ): Promise<WorkResult> {
    const { key, binding, observed, workloads, schemas } = observation;
    const { stored } = observation.status;
    const { discovery, events, metrics } = this.#deps;
    const unread = observation.rollout?.dependents.unread ?? [];
    const unkept = unread.filter(({ isTooLarge }) => isTooLarge).length;
    if (unread.length > unkept) metrics.limited("referencesPerWorkload", unread.length - unkept);
    if (unkept > 0) metrics.limited("watchedBytes", unkept);
    const tooMany = [...sources.values()].filter((each) => each instanceof TooManyKeys).length;
    if (tooMany > 0) metrics.limited("keysPerSource", tooMany);
    const outcomes = [...synced, ...targets.kept];
    const all = [...outcomes, ...released, ...observed.unresolved];
    const problems = [...all, ...(rollout ? [rollout] : [])].map((each) => each.problem);
    if (problems.some((each) => each?.reason === "TooManyWatches")) metrics.limited("watches");
    const notes = [...observed.notes, ...notesOn(context.retained ?? [])];
    const overview = { ...observed, notes, lacking: await this.#permissions.lacking(observation, problems) };
    const incomplete = this.#deps.incomplete(binding);
    const rolledOut = rollout && rolloutOf(rollout);
    const now = new Date();
    const outcome = statusOf(binding, outcomes, released, now, overview, rolledOut, incomplete);
    const copied = copiedSources(stored, context.parsedSources);
    const status = { ...outcome, ...copied, ...protectedTokens(binding, sources) };
    const sooner = await this.#forNewerSchemas(key, stored, status, schemas, now);
    if (sooner !== undefined) return sooner;
    const reported = await this.#status.writeStatus(stored, status);
    this.#status.recordEvent(binding, status);
    for (const note of newlyReadable(binding, outcomes))
      events.record(binding, { type: "Normal", reason: "ReadableCopies", action: "Sync", note });
    const kinds = [...outcomes, ...released].map(({ record, problem }) => ({ target: record, problem }));
    for (const { target, problem } of [...kinds, ...observed.unresolved])
      if (problem?.reason === "KindNotFound") discovery.forget(target.apiVersion);

    const isDone = all.every((each) => each.problem === undefined && !("requeueAfterMs" in each));
    const isUpToDate = isDone && rollout?.isDone !== false;
    const named = [...targets.before, ...targets.after];
    const remembered = isUpToDate ? reported : undefined;
    const remember = this.results.set(key, observed, named, synced, remembered, workloads);
    await this.#deps.cpu.steps(binding.metadata.namespace as string, remember);
    return orWhenStalled(requeueResult(binding, [...all, ...(rollout ? [rollout] : [])]), status, now);
  }

  /** What a schema lacks may be in one that is published since it was read, or in a moment. Undefined if that is waited for, or not the mistake. */
  async #forNewerSchemas(
    key: string,
    stored: SecretBinding,
    status: Status,
    revision: number,
    now: Date,
  ): Promise<WorkResult | undefined> {
    const isNew = isStalledAtOnce(stored, status, now);
    const isOfSchemas = status.conditions?.some(
      ({ type, reason }) => type === "Stalled" && OF_SCHEMAS.includes(reason),
    );
    const since = this.#doubts.get(key);
    this.#doubts.delete(key);
    if (!isNew || !isOfSchemas) return undefined;
    if ((await attempt(this.#deps.schemas.renew(revision))) === true) return AT_ONCE;
    const waited = since === undefined ? 0 : now.getTime() - since;
    if (waited < 0 || waited >= PUBLISHED_WITHIN_MS) return undefined;
    this.#doubts.set(key, since ?? now.getTime());
    return { retry: "after", ms: PUBLISHED_WITHIN_MS - waited };
  }

  /**
   * For a binding that Inlay does not process. Its watches end, and changes in the meantime are noticed when it is processed
   * again.
   */
  async #hold(key: string, binding: SecretBinding, verdict: Verdict): Promise<WorkResult> {
    const deferred = this.#stop(key);
    const held = await this.#status.setFinalizer(binding, ownsAnything(binding.status?.targets ?? []));
    const rollout = deferred && rolloutOf({ status: deferred, workloads: deferred.pending?.workloads?.length ?? 0 });
    const now = new Date();
    const status = heldStatus(held, verdict, now, rollout, this.#deps.incomplete(binding));
    await this.#status.writeStatus(held, status);
    this.#status.recordEvent(binding, status);
    return orWhenStalled(DONE, status, now);
  }

  /** `whole` is the binding itself, if only its stub is kept. */
  async #delete(key: string, binding: SecretBinding, whole = binding): Promise<WorkResult> {
    if (!isHeld(binding)) return DONE;
    this.results.forget(key);
    this.#rollouts.forget(key);
    const { records, problem } = await this.#deletions.releaseHeld(binding, whole);
    let last = whole;
    if (problem !== undefined) {
      const status = heldStatus(whole, refused(problem), new Date());
      try {
        last = await this.#status.writeConditions(whole, status);
      } catch (error) {
        // The release goes on.
        if (!(error instanceof StatusTooLarge)) throw error;
      }
      this.#status.recordEvent(whole, status);
    }
    if (records.length > 0) return BACKOFF;
    await this.#status.removeFinalizer(last);
    return DONE;
  }

  /** A user requests that nothing that is remembered counts. */
  #expire(key: string, { metadata }: SecretBinding): void {
    this.results.expire(key);
    this.#deps.contention.forget(`${metadata.uid}/`);
    this.#deps.rejections.forget(`${metadata.uid}/`);
  }

  /** Ends everything that goes on for a binding that still exists. Returns the status of its rollout that is not written yet. */
  #stop(key: string): ReturnType<Rollouts["forget"]> {
    this.results.forget(key);
    this.#doubts.delete(key);
    this.#permissions.forget(key);
    this.#unsubscribe(key);
    return this.#rollouts.forget(key);
  }

  #unsubscribe(key: string): void {
    this.#deps.watcher.subscribe(key, []);
    this.#deps.polls.subscribe(key, []);
  }

  #forget(key: string): WorkResult {
    this.#stop(key);
    return DONE;
  }
}
