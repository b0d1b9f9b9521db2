/**
 * Runs the rollout of a binding: finds its workloads, compares the values with the baseline, restarts workloads, and returns what
 * the status records. What the cluster would not show after a crash is recorded in the status first.
 */
import { bindingKey, isAfterRollout, isApart, type SecretBinding, type Target } from "../api/binding.ts";
import type { RolloutSpec, RolloutStatus } from "../api/rollout.ts";
import { idOf, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { attempt } from "../kube/access-error.ts";
import type { WatchIdentity } from "../kube/identity.ts";
import type { RunSteps } from "../workqueue/cpu-scheduler.ts";
import type { ConcurrencyLimiter } from "./decide/concurrency.ts";
import {
  intentStatus,
  recordedSlots,
  stillRolling,
  withFewMessages,
  withoutUnwritten,
  withWorkloads,
} from "./decide/intent-status.ts";
import { wrongPace } from "./decide/pace.ts";
import { MAX_SLOT_MS } from "./decide/schedule.ts";
import { kindsWithoutStatus, unseenNote } from "./decide/wait-for-targets.ts";
import { Decider, type Decision, type RollInputs } from "./decider.ts";
import type { RolloutDependencies } from "./dependencies.ts";
import type { DigestCache } from "./digest/values.ts";
import { apartFrom, dependentsOf, type Owners, type RolloutContext, withHiddenUses } from "./discover/dependents.ts";
import type { RolloutReferences } from "./discover/lookups.ts";
import { ProviderClasses, type WorkloadQueries } from "./discover/provider-classes.ts";
import { failureNotifications, refusalNotifications } from "./events.ts";
import { RecentRestarts, RolloutMemories } from "./memory.ts";
import { finishCutOff, JobCopies, withRecreated } from "./restart/recreate-job.ts";
import { replacePods } from "./restart/replace-pods.ts";
import { Restarter } from "./restart/restart.ts";
import { type RolloutResult, recordRolloutEvents, rolloutResult, untilShown, waitsFor } from "./status.ts";
import type { Dependent } from "./types.ts";

/** When the watches certainly show a completed recreation. */
const SHOWN_MS = 1_000;

/** The state of a binding's sources and targets. */
interface Observed {
  /** Changes with every source. */
  sourceState: string;
  /** The objects that are targets. */
  owners(): Owners;
  objects: readonly { target: Pick<Target, "when" | "namespaceSelector">; ref: ObjectRef | Problem }[];
}

type Values = Pick<DigestCache, keyof DigestCache>;

export class RolloutController {
  readonly #deps: RolloutDependencies;
  readonly #values: Values;
  readonly #slots: ConcurrencyLimiter;
  readonly #stamping: Restarter;
  readonly #decider: Decider;
  readonly #classes: ProviderClasses;
  readonly #memories = new RolloutMemories();
  #restored = false;

  constructor(deps: RolloutDependencies, values: Values, slots: ConcurrencyLimiter) {
    this.#deps = deps;
    this.#values = values;
    this.#slots = slots;
    const recent = new RecentRestarts();
    this.#stamping = new Restarter(deps, recent);
    this.#decider = new Decider(deps, { values, slots, recent });
    this.#classes = new ProviderClasses(deps.discovery, deps.watcher);
  }

  /** How many rollouts wait, by reason. */
  get waiting(): Map<string, number> {
    const byReason = Map.groupBy(this.#memories.waits(), ([, reason]) => reason);
    return new Map([...byReason].map(([reason, all]) => [reason, all.length]));
  }

  /** The bindings with a rollout, with the reason why each waits, and the slots. */
  get state() {
    const waiting = [...this.#memories.waits()].map(([binding, reason]) => ({ binding, reason }));
    return { waiting, ...this.#slots.state };
  }

  /** Requeues every binding with a rollout, because the rules of the installation have changed. */
  wake(): void {
    for (const [key] of this.#memories.waits()) this.#deps.requeue(key);
  }

  /** Adds to the lookups of a binding those for the consumers of its Secrets that mount them through a SecretProviderClass. */
  async follow(
    binding: SecretBinding,
    identity: WatchIdentity["identity"],
    references: RolloutReferences,
  ): Promise<WorkloadQueries> {
    const steps: RunSteps = (work) => this.#deps.cpu.steps(binding.metadata.namespace as string, work);
    return this.#classes.followed(bindingKey(binding), identity, references, steps);
  }

  /** Collects what is known of the workloads before the values of the sources are read. Yields where it may be interrupted. */
  *look(
    binding: SecretBinding,
    as: WatchIdentity,
    references: WorkloadQueries,
    sources: RolloutContext["sources"],
    { sourceState, owners, objects }: Observed,
  ): Generator<void, RolloutContext> {
    const [{ watcher }, key] = [this.#deps, bindingKey(binding)];
    const spec = binding.spec.rollout as RolloutSpec;
    const memory = this.#memories.of(binding);
    const before = memory.before(binding);
    const shown = yield* dependentsOf(watcher, key, as, binding, references, owners);
    shown.pending ||= references.classes.some((each) => watcher.list(key, each).phase === "pending");
    // The generation identifies the spec, which names the sources.
    const sourceRevisions = `${binding.metadata.generation},${sourceState}`;
    const sourceObjects = new Map(
      [...sources].flatMap(([name, source]) => {
        const watched = source instanceof Problem ? undefined : source.watched;
        const { version } = watched ? watcher.get(key, { ...as, ref: watched }) : {};
        return version === undefined ? [] : [[name, version] as const];
      }),
    );
    return {
      binding,
      identity: as.identity,
      spec,
      wrong: memory.observe(sourceRevisions, () => wrongPace(spec, Date.now())),
      references,
      dependents: yield* withHiddenUses(withRecreated(shown, memory.recreated, before), before, binding),
      sources,
      // A target that is written after the rollout has the former values until then.
      targets: objects.flatMap(({ target, ref }) => {
        if (ref instanceof Problem || isAfterRollout(target)) return [];
        return [{ ref, isApart: isApart(target, ref.namespace, binding) }];
      }),
      sourceRevisions,
      sourceObjects,
      patienceMs: memory.patienceMs(shown.pending),
    };
  }

  /** Whether the rollout needs the values of the sources. */
  needsValues({ binding, dependents, sourceRevisions }: RolloutContext): boolean {
    const { pending, problem, used } = dependents;
    if (pending || problem !== undefined) return false;
    return this.#values.known(bindingKey(binding), sourceRevisions, used) === undefined;
  }

  /** Restarts the workloads that must restart and may now. `note` writes a status before the actions that it announces. */
  async roll(
    rolling: RolloutContext,
    inputs: RollInputs,
    note: (status: RolloutStatus) => Promise<void>,
  ): Promise<RolloutResult> {
    const { binding, dependents } = rolling;
    const [stored, workloads] = [binding.status?.rollout, dependents.all.length];
    this.#restore();
    if (dependents.pending && !dependents.problem) return { status: stored, workloads: undefined, isDone: false };
    // A restart that a crash has interrupted comes first.
    const isFinished = await attempt(finishCutOff(this.#deps, rolling, stored, this.#memories.of(binding).settled));
    if (isFinished === true) return { status: stored, workloads, requeueAfterMs: SHOWN_MS, isDone: false };
    const decision = isFinished instanceof Problem ? isFinished : await attempt(this.decide(rolling, inputs));
    if (decision instanceof Problem) return this.#undecided(rolling, decision);
    return this.#carryOut(rolling, inputs, decision, note);
  }

  /** Decides what to do now. Writes nothing. Throws Problem. */
  decide(rolling: RolloutContext, inputs: RollInputs): Promise<Decision> {
    this.#restore();
    return this.#decider.decide(rolling, inputs, this.#memories.of(rolling.binding));
  }

  /** If nothing can be decided, workloads that roll out keep their slots, and the state of the rollout stays. */
  #undecided({ binding, dependents }: RolloutContext, cause: Problem): RolloutResult {
    // A reason why workloads can't be known comes first, as after a decision.
    const problem = (apartFrom({ ...dependents, missing: [], unread: [] }) ?? cause).with({
      retryPolicy: cause.retryPolicy,
    });
    const memory = this.#memories.of(binding);
    const rolling = stillRolling(dependents.all, memory.before(binding), Date.now());
    memory.waits = waitsFor(memory.before(binding), problem);
    // Workloads that are not listed yet keep their slots.
    if (!dependents.pending) this.#slots.update(bindingKey(binding), rolling.map(slotOf));
    const isRolling = rolling.length > 0;
    return {
      status: binding.status?.rollout,
      workloads: dependents.all.length,
      problem,
      isDone: problem.retryPolicy === "OnChange" && !isRolling,
      ...(isRolling && { requeueAfterMs: MAX_SLOT_MS }),
    };
  }

  /** Carries out a decision and returns its result. */
  async #carryOut(
    rolling: RolloutContext,
    { targets }: RollInputs,
    { decided, known }: Decision,
    note: (status: RolloutStatus) => Promise<void>,
  ): Promise<RolloutResult> {
    const { binding, spec, wrong, dependents } = rolling;
    const { client, installation, notifier } = this.#deps;
    const memory = this.#memories.of(binding);
    const stored = binding.status?.rollout;
    const noted = intentStatus(decided, stored, spec, installation.rollouts);
    if (noted !== undefined) await note(noted);
    const copies = new JobCopies(noted ?? stored, note);
    const { unwritten, records } = await this.#stamping.stamp(rolling, decided, known, memory, copies);
    for (const { dependent } of decided.stamps) memory.refused.delete(dependent.version.uid);
    for (const [{ version }, reason] of unwritten) if (reason !== "stale") memory.refused.add(version.uid);
    const recorded = withWorkloads(copies.in(decided.status), (each) => ({ ...each, ...records.get(each.uid) }));
    const all = withoutUnwritten(unwritten, { ...decided, status: recorded });
    const written = { ...all, status: withFewMessages(all.status) };
    const mayReplace = spec.replacePods && !spec.suspend && !installation.rollouts.suspend;
    const { done, problem: unreplaced } = mayReplace
      ? await replacePods(client, rolling, written, (each) => memory.isSeen(each))
      : { done: written };
    this.#slots.update(bindingKey(binding), done.rolling.map(slotOf));
    recordRolloutEvents(this.#deps, binding, done.happened);
    const refused = refusalNotifications(binding, unwritten, decided, stored);
    for (const each of [...failureNotifications(binding, done), ...refused]) notifier.notify(each);
    const reasons = [...unwritten.values()];
    const apart = apartFrom(dependents);
    const [problem = unreplaced ?? wrong ?? apart ?? known.unread] = reasons.filter((each) => each !== "stale");
    if (done.status.pending === undefined) {
      memory.stamped.clear();
      memory.reverts.clear();
      memory.ages.clear();
    }
    const isStale = reasons.includes("stale");
    const waiting = () => this.#memories.unreported;
    const workloads = dependents.all.length;
    // A target may lack the new values even if no workload waits for it.
    const isWritten = targets.everywhere === undefined && targets.namespaces.size === 0;
    const isThrough = problem === undefined && done.status.pending === undefined && isWritten && !known.sourceMismatch;
    const result = {
      ...rolloutResult(memory, copies.status, done, workloads, problem, waiting, isStale),
      ...(isThrough && { rolledOutFor: known.versions }),
      ...(await this.#noteOf(rolling)),
    };
    return untilShown(result, memory.recreated);
  }

  /** What the rollout can't wait for. */
  async #noteOf({ spec, targets }: RolloutContext): Promise<Pick<RolloutResult, "note">> {
    if (spec.waitForTargets === undefined) return {};
    const note = unseenNote(await kindsWithoutStatus(this.#deps.schemas, targets));
    return note === undefined ? {} : { note };
  }

  /**
   * Ends the rollout of a binding: its workloads hold no slots any longer, not even those from before a start. Returns the status
   * that is not written yet.
   */
  forget(key: string): RolloutStatus | undefined {
    this.#restore();
    const unreported = this.#memories.forget(key)?.unreported?.status;
    this.#values.forget(key);
    this.#slots.forget(key);
    return unreported;
  }

  /** At the start, restores the slots of rollouts from before. */
  #restore(): void {
    if (this.#restored) return;
    this.#restored = true;
    for (const binding of this.#deps.bindings.all)
      this.#slots.restore(bindingKey(binding), recordedSlots(binding.status?.rollout, Date.now()));
  }
}

const slotOf = ({ ref }: Dependent) => ({ id: idOf(ref), namespace: ref.namespace ?? "" });
