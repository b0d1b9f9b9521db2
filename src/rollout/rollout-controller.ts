/**
 * The rollout of a binding: its workloads and the values that they stand for come in, those that have to are restarted, and
 * what status says of that goes out. What the cluster does not show after a crash is recorded in status first.
 */
import { bindingKey, type SecretBinding } from "../api/binding.ts";
import type { RolloutSpec, RolloutStatus } from "../api/rollout.ts";
import { idOf, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { attempt } from "../kube/access-error.ts";
import type { WatchIdentity } from "../kube/identity.ts";
import type { References } from "../targets/references.ts";
import type { ConcurrencyLimiter } from "./decide/concurrency.ts";
import { withoutDisruptionBudget } from "./decide/disruption-budgets.ts";
import { decideRollout, type RolloutDecision } from "./decide/engine.ts";
import { intentStatus, recordedPlaces, stillRolling, withoutUnwritten } from "./decide/intent-status.ts";
import { blockOf, STOPPED, wrongPace } from "./decide/pace.ts";
import { refusalOf } from "./decide/refusal.ts";
import { wrongRestartField } from "./decide/restart-field-schema.ts";
import { MAX_PLACE_MS } from "./decide/schedule.ts";
import { targetsNotObserved } from "./decide/wait-for-targets.ts";
import type { RolloutDependencies } from "./dependencies.ts";
import type { DigestKeys } from "./digest/keys.ts";
import { DigestCache, type SourceReadings, type ValueDigests } from "./digest/values.ts";
import { dependentsOf, type Owners, type RolloutContext } from "./discover/dependents.ts";
import { resolveRollout } from "./discover/lookups.ts";
import { ProviderClasses, type WorkloadQueries } from "./discover/provider-classes.ts";
import { RolloutMemories } from "./memory.ts";
import { JobCopies } from "./restart/job-copies.ts";
import { finishCutOff, withRecreated } from "./restart/recreated-jobs.ts";
import { replacePods } from "./restart/replace-pods.ts";
import { Restarter } from "./restart/restart.ts";
import { type RolloutResult, recordRolloutEvents, rolloutResult, untilShown } from "./status.ts";
import type { Dependent, RolloutBlock } from "./types.ts";

/** When what was finished is shown for certain. */
const SHOWN_MS = 1_000;
/** When it is looked again whether there is a PodDisruptionBudget. */
const BUDGETS_AGAIN_MS = 30_000;
const NONE: ReadonlySet<never> = new Set();

/** What is to be known of a binding's sources and targets. */
interface Observed {
  /** Changes with every source. */
  sourceState: string;
  /** The objects that are targets. */
  owners(): Owners;
  objects: readonly { ref: ObjectRef | Problem }[];
}

/** What is to be done, and the values that it is for. */
interface Decision {
  decided: RolloutDecision;
  known: ValueDigests;
}

export class RolloutController {
  readonly #deps: RolloutDependencies;
  readonly #values: DigestCache;
  readonly #slots: ConcurrencyLimiter;
  readonly #stamping: Restarter;
  readonly #classes: ProviderClasses;
  readonly #memories = new RolloutMemories();
  #restored = false;

  constructor(deps: RolloutDependencies, keys: DigestKeys, slots: ConcurrencyLimiter) {
    this.#deps = deps;
    this.#values = new DigestCache(keys);
    this.#slots = slots;
    this.#stamping = new Restarter(deps);
    this.#classes = new ProviderClasses(deps.discovery, deps.watcher);
  }

  /** How many rollouts wait, by what for. */
  get waiting(): Map<string, number> {
    const byReason = Map.groupBy(this.#memories.waits(), ([, reason]) => reason);
    return new Map([...byReason].map(([reason, all]) => [reason, all.length]));
  }

  /** Every binding whose rollout is under way: what its installation lets it do has changed. */
  wake(): void {
    for (const [key] of this.#memories.waits()) this.#deps.requeue(key);
  }

  /** Where the workloads of a binding are; undefined for one without a rollout. */
  async find(
    binding: SecretBinding,
    identity: WatchIdentity["identity"],
    sources: Pick<References, "parsedSources" | "sources">,
  ): Promise<WorkloadQueries | undefined> {
    const { rollout } = binding.spec;
    if (rollout === undefined) return undefined;
    const references = await resolveRollout(binding, rollout, sources, this.#deps);
    return this.#classes.followed(bindingKey(binding), identity, references);
  }

  /** What is known of them before the values of the sources are read. */
  look(
    binding: SecretBinding,
    as: WatchIdentity,
    references: WorkloadQueries,
    sources: RolloutContext["sources"],
    { sourceState, owners, objects }: Observed,
  ): RolloutContext {
    const [{ watcher }, key] = [this.#deps, bindingKey(binding)];
    const spec = binding.spec.rollout as RolloutSpec;
    const memory = this.#memories.of(binding);
    const shown = dependentsOf(watcher, key, as, binding, references, owners);
    shown.pending ||= references.classes.some((each) => watcher.list(key, each).phase === "pending");
    // The spec says which source is which.
    const sourceRevisions = `${binding.metadata.generation},${sourceState}`;
    return {
      binding,
      identity: as.identity,
      spec,
      wrong: memory.observe(sourceRevisions, () => wrongPace(spec, Date.now())),
      references,
      dependents: withRecreated(shown, memory.recreated, memory.before(binding)),
      sources,
      targets: objects.flatMap(({ ref }) => (ref instanceof Problem ? [] : [ref])),
      sourceRevisions,
      patienceMs: memory.patienceMs(shown.pending),
    };
  }

  /** Whether the values of the sources have to be read for it. */
  needsValues({ binding, dependents, sourceRevisions }: RolloutContext): boolean {
    const { pending, problem, used } = dependents;
    if (pending || problem !== undefined) return false;
    return this.#values.known(bindingKey(binding), sourceRevisions, used) === undefined;
  }

  /**
   * Restarts what has to be, and may be now. `targetsNotSynced` says why the values are not where they belong yet; `note`
   * writes a status before what it speaks of is done.
   */
  async roll(
    rolling: RolloutContext,
    read: SourceReadings,
    targetsNotSynced: RolloutBlock | undefined,
    note: (status: RolloutStatus) => Promise<void>,
  ): Promise<RolloutResult> {
    const { binding, dependents } = rolling;
    const [stored, workloads] = [binding.status?.rollout, dependents.all.length];
    this.#restore();
    if (dependents.pending && !dependents.problem) return { status: stored, workloads: undefined, isDone: false };
    const decision = await attempt(this.#decide(rolling, read, targetsNotSynced));
    if (decision instanceof Problem) return this.#undecided(rolling, decision);
    if (decision === "finished") return { status: stored, workloads, requeueAfterMs: SHOWN_MS, isDone: false };
    return this.#carryOut(rolling, decision, note);
  }

  /** Where nothing can be decided, what is seen to roll out keeps its places, and all else that is under way stays as it is. */
  #undecided({ binding, dependents }: RolloutContext, problem: Problem): RolloutResult {
    const rolling = stillRolling(dependents.all, this.#memories.of(binding).before(binding), Date.now());
    // Those that are not listed yet keep what they have.
    if (!dependents.pending) this.#slots.update(bindingKey(binding), rolling.map(placeOf));
    const isRolling = rolling.length > 0;
    return {
      status: binding.status?.rollout,
      workloads: dependents.all.length,
      problem,
      isDone: problem.retryPolicy === "OnChange" && !isRolling,
      ...(isRolling && { requeueAfterMs: MAX_PLACE_MS }),
    };
  }

  /** What is to be done now; `finished` where what a crash had cut off was done in place of that. Throws Problem. */
  async #decide(
    rolling: RolloutContext,
    read: SourceReadings,
    targetsNotSynced: RolloutBlock | undefined,
  ): Promise<Decision | "finished"> {
    const { binding, spec, wrong, references, dependents, sources, sourceRevisions } = rolling;
    const { schemas } = this.#deps;
    const memory = this.#memories.of(binding);
    if (await finishCutOff(this.#deps, rolling, binding.status?.rollout, memory.settled)) return "finished";
    if (dependents.problem) throw dependents.problem;
    const { generation } = binding.metadata;
    const wrongField =
      memory.checked === generation ? undefined : await wrongRestartField(schemas, references.lookups, spec);
    if (wrongField) throw wrongField;
    memory.checked = generation;
    const [key, before] = [bindingKey(binding), memory.before(binding)];
    const known = await this.#values.digests(key, sourceRevisions, dependents.used, sources, read, before);
    const blocked = targetsNotSynced ?? known.sourceMismatch ?? wrong;
    // Where there are targets, the values are there once those hold them.
    if (blocked !== undefined) memory.setReady(false);
    else if (binding.spec.targets.length === 0) memory.setReady(true, memory.observed?.since);
    else if (spec.waitForTargets === undefined) memory.setReady(true);
    const decided = this.#decideBy(rolling, known, blocked);
    return { decided: decided.stamps.length === 0 ? decided : await this.#checked(rolling, known, decided), known };
  }

  /** Does what was decided, and says what came of it. */
  async #carryOut(
    rolling: RolloutContext,
    { decided, known }: Decision,
    note: (status: RolloutStatus) => Promise<void>,
  ): Promise<RolloutResult> {
    const { binding, spec, wrong, dependents } = rolling;
    const { client, installation } = this.#deps;
    const memory = this.#memories.of(binding);
    const stored = binding.status?.rollout;
    const noted = intentStatus(decided, stored, spec, installation.rollouts);
    if (noted !== undefined) await note(noted);
    const copies = new JobCopies(noted ?? stored, note);
    const unwritten = await this.#stamping.stamp(rolling, decided, known, memory, copies);
    const written = withoutUnwritten(unwritten, { ...decided, status: copies.in(decided.status) });
    const mayReplace = spec.replacePods && !spec.suspend && !installation.rollouts.suspend;
    const { done, problem: unreplaced } = mayReplace
      ? await replacePods(client, rolling, written, (each) => memory.isSeen(each))
      : { done: written };
    this.#slots.update(bindingKey(binding), done.rolling.map(placeOf));
    recordRolloutEvents(this.#deps, binding, done.happened);
    const reasons = [...unwritten.values()];
    const [problem = unreplaced ?? wrong] = reasons.filter((each) => each !== "stale");
    if (done.status.pending === undefined) memory.stamped.clear();
    const isStale = reasons.includes("stale");
    const waiting = () => this.#memories.unsaid;
    const workloads = dependents.all.length;
    const result = rolloutResult(memory, copies.status, done, workloads, problem, waiting, isStale);
    return untilShown(result, memory.recreated);
  }

  /**
   * Nothing is done for a binding any more: its workloads take no place in `maxConcurrent`, not even those that began before the start.
   * Returns what was done and is not in status yet.
   */
  forget(key: string): RolloutStatus | undefined {
    this.#restore();
    const unsaid = this.#memories.forget(key)?.unsaid?.status;
    this.#values.forget(key);
    this.#slots.forget(key);
    return unsaid;
  }

  /** Where something is to be restarted, only now it is looked at what that needs. Throws Problem. */
  async #checked(rolling: RolloutContext, known: ValueDigests, decided: RolloutDecision): Promise<RolloutDecision> {
    const { binding, dependents, identity, targets, spec } = rolling;
    const { client } = this.#deps;
    if (spec.waitForTargets !== undefined) {
      const hold = await targetsNotObserved(client, identity, targets, spec.waitForTargets);
      this.#memories.of(binding).setReady(hold === undefined);
      if (hold !== undefined) return this.#decideBy(rolling, known, hold);
    }
    if (!spec.requireDisruptionBudget) return decided;
    const without = new Set(await withoutDisruptionBudget(client, identity, dependents.all));
    if (without.size === 0) return decided;
    const checked = this.#decideBy(rolling, known, undefined, without);
    // PodDisruptionBudgets are not watched.
    return { ...checked, requeueAfterMs: Math.min(checked.requeueAfterMs ?? BUDGETS_AGAIN_MS, BUDGETS_AGAIN_MS) };
  }

  /** Throws Problem. */
  #decideBy(
    { binding, spec, references, dependents }: RolloutContext,
    { keyId, digests, former }: ValueDigests,
    blocked: RolloutBlock | undefined,
    without: ReadonlySet<Dependent> = NONE,
  ): RolloutDecision {
    const key = bindingKey(binding);
    const memory = this.#memories.of(binding);
    const before = memory.before(binding);
    const { installation } = this.#deps;
    const now = Date.now();
    return decideRollout({
      now,
      binding: binding.metadata.uid,
      steps: references.steps,
      dependents: dependents.all,
      before,
      key: keyId,
      digests,
      ...(before !== undefined && before.digestKeyID !== keyId && { rekeyed: { former } }),
      rollFirst: spec.onFirstSync === "Rollout",
      maxConcurrent: spec.maxConcurrent ?? Number.POSITIVE_INFINITY,
      block: (pending, last) =>
        blocked ?? (installation.rollouts.suspend ? STOPPED : undefined) ?? blockOf(spec, pending, last, now),
      refusal: (dependent) => refusalOf(spec, dependent, without.has(dependent)),
      take: (dependent) => this.#slots.take(key, idOf(dependent.ref), dependent.ref.namespace ?? ""),
      isSeen: (dependent) => memory.isSeen(dependent),
    });
  }

  /** At the start, what had begun before takes its places first. */
  #restore(): void {
    if (this.#restored) return;
    this.#restored = true;
    for (const binding of this.#deps.bindings.all)
      this.#slots.restore(bindingKey(binding), recordedPlaces(binding.status?.rollout, Date.now()));
  }
}

const placeOf = ({ ref }: Dependent) => ({ id: idOf(ref), namespace: ref.namespace ?? "" });
