/**
 * The rollout of a binding: its workloads and the values that they stand for come in, those that have to are restarted, and
 * what status says of that goes out. What can't be told from the cluster after a crash is noted before it is done.
 */

import { bindingKey, type SecretBinding } from "../api/binding.ts";
import type { RolloutRules } from "../api/installation.ts";
import type { Dependent, Hold, RolloutSpec, RolloutStatus } from "../api/rollout.ts";
import { idOf } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { As } from "../cache/subscription.ts";
import type { View } from "../controllers/binding/observed-state.ts";
import { attempt } from "../kube/access-error.ts";
import type { Parts } from "../parts.ts";
import type { References } from "../targets/references.ts";
import { isJob } from "../workloads/job-copy.ts";
import { givenText } from "../workloads/restart-field.ts";
import type { Slots } from "./decide/concurrency.ts";
import { unbudgeted } from "./decide/disruption-budgets.ts";
import { type Decided, decideRollout } from "./decide/engine.ts";
import { aboutToBe, isNoted, recordedPlaces, stillRolling, without } from "./decide/intent-status.ts";
import { holdOf, STOPPED, wrongPace } from "./decide/pace.ts";
import { refusalOf } from "./decide/refusal.ts";
import { wrongRestartField } from "./decide/restart-field-schema.ts";
import { LONGEST_PLACE_MS, type Ordered } from "./decide/schedule.ts";
import { notTakenIn } from "./decide/wait-for-targets.ts";
import type { DigestKeys } from "./digest/keys.ts";
import { type Known, type Read, Values } from "./digest/values.ts";
import { dependentsOf, type RollingRun } from "./discover/dependents.ts";
import { resolveRollout } from "./discover/lookups.ts";
import { type Followed, ProviderClasses } from "./discover/provider-classes.ts";
import { Memories, type Memory } from "./memory.ts";
import { finishCutOff, untilShown, withRecreated } from "./restart/recreated-jobs.ts";
import { replaceDue } from "./restart/replace-pods.ts";
import { isSeenSince, Stamping } from "./restart/restart.ts";
import { type Rolled, rolled, tell } from "./status.ts";

/** The first list of workloads mostly comes with those of all else, and spares a second look; the fields wait no longer for it. */
const PATIENCE_MS = 2_000;
/** When what was finished is shown for certain. */
const SHOWN_MS = 1_000;
/** When it is looked again whether there is a PodDisruptionBudget. */
const BUDGETS_AGAIN_MS = 30_000;
const NONE: ReadonlySet<never> = new Set();

export class Rolling {
  readonly #parts: Parts;
  readonly #values: Values;
  readonly #slots: Slots;
  readonly #stamping: Stamping;
  readonly #classes: ProviderClasses;
  readonly #memories = new Memories();
  #restored = false;

  constructor(parts: Parts, keys: DigestKeys, slots: Slots) {
    this.#parts = parts;
    this.#values = new Values(keys);
    this.#slots = slots;
    this.#stamping = new Stamping(parts);
    this.#classes = new ProviderClasses(parts.discovery, parts.streams);
  }

  /** How many rollouts wait, by what for. */
  get waiting(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const [, reason] of this.#memories.waits()) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    return counts;
  }

  /** Every binding whose rollout is under way: what its installation lets it do has changed. */
  wake(): void {
    for (const [key] of this.#memories.waits()) this.#parts.again(key);
  }

  /** Where the workloads of a binding are; undefined for one without a rollout. */
  async find(binding: SecretBinding, identity: As["identity"], { sources }: References): Promise<Followed | undefined> {
    const { rollout } = binding.spec;
    const { discovery, installation } = this.#parts;
    if (rollout === undefined) return undefined;
    const references = await resolveRollout(binding, rollout, sources, discovery, installation);
    return this.#classes.followed(bindingKey(binding), identity, references);
  }

  /** What is known of them before the values of the sources are read. */
  look(
    binding: SecretBinding,
    as: As,
    references: Followed,
    refs: RollingRun["refs"],
    { sourceState, owners, members }: View,
  ): RollingRun {
    const [{ streams }, key] = [this.#parts, bindingKey(binding)];
    const shown = dependentsOf(streams, key, as, binding, references, owners);
    shown.pending ||= references.classes.some((each) => streams.members(key, each).phase === "pending");
    const spec = binding.spec.rollout as RolloutSpec;
    const memory = this.#memories.of(binding);
    const dependents = withRecreated(shown, memory.recreated, memory.unsaid?.status ?? binding.status?.rollout);
    // The spec says which source is which.
    const inputs = `${binding.metadata.generation},${sourceState}`;
    if (memory.seen?.inputs !== inputs) {
      memory.seen = { inputs, since: performance.now(), wrong: wrongPace(spec, Date.now()) };
      memory.readyAt = Number.POSITIVE_INFINITY;
    }
    if (!dependents.pending) delete memory.pendingSince;
    else memory.pendingSince ??= performance.now();
    const patienceMs = Math.max(0, (memory.pendingSince ?? Number.NEGATIVE_INFINITY) + PATIENCE_MS - performance.now());
    const targets = members.flatMap(({ ref }) => (ref instanceof Problem ? [] : [ref]));
    const { wrong } = memory.seen;
    return { binding, identity: as.identity, spec, wrong, references, dependents, refs, targets, inputs, patienceMs };
  }

  /** Whether the values of the sources have to be read for it. */
  needsValues({ binding, dependents, inputs }: RollingRun): boolean {
    const { pending, problem, used } = dependents;
    if (pending || problem !== undefined) return false;
    return this.#values.known(bindingKey(binding), inputs, used) === undefined;
  }

  /**
   * Restarts what has to be, and may be now. `notWritten` says why the values are not where they belong yet; `note`
   * writes a status before what it speaks of is done.
   */
  async roll(
    rolling: RollingRun,
    read: Read,
    notWritten: Hold | undefined,
    note: (status: RolloutStatus) => Promise<void>,
  ): Promise<Rolled> {
    const { binding, wrong } = rolling;
    const key = bindingKey(binding);
    const memory = this.#memories.of(binding);
    const stored = binding.status?.rollout;
    const workloads = rolling.dependents.all.length;
    const before = memory.unsaid?.status ?? stored;
    this.#restore();
    const failed = (problem: Problem): Rolled => {
      const places = stillRolling(rolling.dependents.all, before, Date.now()).map(placeOf);
      // Those that are not listed yet keep what they have.
      if (!rolling.dependents.pending) this.#slots.restore(key, places);
      const isDone = problem.healing === "event" && places.length === 0;
      return { status: stored, workloads, problem, isDone, ...(places.length > 0 && { againMs: LONGEST_PLACE_MS }) };
    };
    const finished = await attempt(finishCutOff(this.#parts.client, rolling, stored));
    if (finished instanceof Problem) return failed(finished);
    if (finished) return { status: stored, workloads, againMs: SHOWN_MS, isDone: false };
    if (rolling.dependents.problem) return failed(rolling.dependents.problem);
    if (rolling.dependents.pending) return { status: stored, workloads: undefined, isDone: false };
    const { generation } = binding.metadata;
    const wrongField = memory.checked === generation ? undefined : await this.#wrongField(rolling);
    if (wrongField) return failed(wrongField);
    memory.checked = generation;
    const known = await attempt(this.#know(rolling, read, before));
    if (known instanceof Problem) return failed(known);
    const blocked = notWritten ?? known.differ ?? wrong;
    // Where there are targets, the values are there once those hold them.
    if (blocked !== undefined) memory.readyAt = Number.POSITIVE_INFINITY;
    else if (binding.spec.targets.length === 0) memory.readyAt = memory.seen?.since ?? memory.readyAt;
    else if (rolling.spec.waitForTargets === undefined) memory.readyAt = Math.min(memory.readyAt, performance.now());
    const decided = await attempt(this.#decideOnce(rolling, known, before, blocked));
    if (decided instanceof Problem) return failed(decided);
    const mustBeNoted = this.#mustBeNoted(rolling.spec, decided) && !isNoted(decided, stored);
    const noted = mustBeNoted ? aboutToBe(decided) : undefined;
    if (noted !== undefined) await note(noted);
    const unwritten = await this.#stamping.stamp(rolling, decided, known, memory);
    const { done, problem: unreplaced } = await this.#replace(rolling, without(unwritten, decided), memory);
    this.#slots.restore(key, done.rolling.map(placeOf));
    tell(this.#parts, binding, done.happened);
    const reasons = [...unwritten.values()];
    const [problem = unreplaced ?? wrong] = reasons.filter((each) => each !== "stale");
    if (done.status.pending === undefined) memory.stamped.clear();
    const isStale = reasons.includes("stale");
    const waiting = () => this.#memories.unsaid;
    return untilShown(rolled(memory, noted ?? stored, done, workloads, problem, waiting, isStale), memory.recreated);
  }

  /**
   * Nothing is done for a binding any more: what it has rolling takes nobody's place, also if it had begun before the start.
   * Returns what was done and is not in status yet.
   */
  forget(key: string): RolloutStatus | undefined {
    this.#restore();
    const unsaid = this.#memories.forget(key)?.unsaid?.status;
    this.#values.forget(key);
    this.#slots.forget(key);
    return unsaid;
  }

  #wrongField({ references, spec }: RollingRun): Promise<Problem | undefined> {
    return wrongRestartField(this.#parts.schemas, references.lookups, spec);
  }

  /** Throws Problem. */
  async #know({ binding, dependents, refs, inputs }: RollingRun, read: Read, before?: RolloutStatus): Promise<Known> {
    const [key, { used }] = [bindingKey(binding), dependents];
    return this.#values.known(key, inputs, used) ?? this.#values.read(key, inputs, used, refs, read, before);
  }

  /** Where something is to be restarted, only now it is looked at what that needs. Throws Problem. */
  async #decideOnce(
    rolling: RollingRun,
    known: Known,
    before: RolloutStatus | undefined,
    blocked: Hold | undefined,
  ): Promise<Decided> {
    const decided = this.#decide(rolling, known, before, blocked);
    const { binding, dependents, identity, targets } = rolling;
    const { client } = this.#parts;
    const { waitForTargets, requireDisruptionBudget } = rolling.spec;
    if (decided.stamps.length === 0) return decided;
    if (waitForTargets !== undefined) {
      const hold = await notTakenIn(client, identity, targets, waitForTargets);
      const memory = this.#memories.of(binding);
      memory.readyAt = hold === undefined ? Math.min(memory.readyAt, performance.now()) : Number.POSITIVE_INFINITY;
      if (hold !== undefined) return this.#decide(rolling, known, before, hold);
    }
    if (!requireDisruptionBudget) return decided;
    const without = new Set(await unbudgeted(client, identity, dependents.all));
    if (without.size === 0) return decided;
    const checked = this.#decide(rolling, known, before, undefined, without);
    // Nobody tells when there is one.
    return { ...checked, againMs: Math.min(checked.againMs ?? BUDGETS_AGAIN_MS, BUDGETS_AGAIN_MS) };
  }

  /** Throws Problem. */
  #decide(
    { binding, spec, references, dependents }: RollingRun,
    { keyId, digests, former }: Known,
    before: RolloutStatus | undefined,
    blocked: Hold | undefined,
    without: ReadonlySet<Dependent> = NONE,
  ): Decided {
    const key = bindingKey(binding);
    const { stamped } = this.#memories.of(binding);
    const { installation } = this.#parts;
    const now = Date.now();
    return decideRollout({
      now,
      binding: binding.metadata.uid,
      steps: references.steps,
      dependents: dependents.all,
      before,
      key: keyId,
      digests,
      ...(before !== undefined && before.key !== keyId && { rekeyed: { former } }),
      rollFirst: spec.onFirstSync === "Rollout",
      maxConcurrent: spec.maxConcurrent ?? Number.POSITIVE_INFINITY,
      hold: (pending, last) =>
        blocked ?? (installation.rollouts.suspend ? STOPPED : undefined) ?? holdOf(spec, pending, last, now),
      refusal: (dependent) => refusalOf(spec, dependent, without.has(dependent)),
      take: (dependent) => this.#slots.take(key, idOf(dependent.ref), dependent.ref.namespace ?? ""),
      isSeen: (dependent) => isSeenSince(dependent, stamped.get(dependent.version.uid)),
    });
  }

  /** Has old pods replaced where nobody else does, unless nothing may restart. */
  async #replace(run: RollingRun, decided: Decided, memory: Memory): Promise<{ done: Decided; problem?: Problem }> {
    const { client, installation } = this.#parts;
    if (!run.spec.replacePods || run.spec.suspend || installation.rollouts.suspend) return { done: decided };
    return replaceDue(client, run, decided, (each) => isSeenSince(each, memory.stamped.get(each.version.uid)));
  }

  /** Whether a crash could have a workload restarted twice, or more of them at once than may be. */
  #mustBeNoted({ stamp: { value } }: RolloutSpec, { stamps }: Decided): boolean {
    const isTold = ({ dependent }: Ordered) =>
      value === "Revision" && givenText(dependent) === undefined && !isJob(dependent.ref.resource);
    return stamps.length > 0 && (isLimited(this.#parts.installation.rollouts) || !stamps.every(isTold));
  }

  /** At the start, what had begun before takes its places first. */
  #restore(): void {
    if (this.#restored) return;
    this.#restored = true;
    for (const binding of this.#parts.bindings.all)
      this.#slots.restore(bindingKey(binding), recordedPlaces(binding.status?.rollout, Date.now()));
  }
}

const isLimited = ({ maxConcurrent, maxConcurrentPerNamespace }: RolloutRules) =>
  (maxConcurrent ?? maxConcurrentPerNamespace) !== undefined;
const placeOf = ({ ref }: Dependent) => ({ id: idOf(ref), namespace: ref.namespace ?? "" });
