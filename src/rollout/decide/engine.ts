/**
 * Decides from the recorded status, the digests and the workloads what to restart now, what the status records, and when to
 * reconcile again. Pure: the same input leads to the same decision, also after a crash.
 */
import type { Digests, Pending, RolloutSpec, RolloutStatus, WorkloadStatus } from "../../api/rollout.ts";
import { sameJson } from "../../apimachinery/json.ts";
import type { Progress } from "../../workloads/progress.ts";
import { ABSENT, digestsIn, isPresent } from "../digest/digest.ts";
import type { Dependent, NamespaceProblem, RolloutBlock, RolloutEvent } from "../types.ts";
import {
  affectedBy,
  baselineOf,
  changedFrom,
  type AffectedWorkload as Entry,
  goneFrom,
  missedBy,
  NEVER,
  type Rekeyed,
  type StartFacts,
  startsOf,
  waitingAgain,
} from "./affected.ts";
import { bears, type Revert, reverted } from "./reverts.ts";
import {
  failureOf,
  isRolling,
  MAX_SLOT_MS,
  type PlannedRestart,
  type ScheduleInput,
  schedule,
  stoppedUntil,
  stopRecord,
  timeOf,
  untilSettled,
} from "./schedule.ts";

interface Compared {
  before: RolloutStatus | undefined;
  digests: Digests;
}

/** A difference that does not count becomes part of the baseline. During a rollout, the digest that it restarts for stays. */
function countedOf(
  { before, digests }: Compared,
  used: Iterable<string>,
  restartOn: RolloutSpec["restartOn"] = [],
  rekeyed?: Rekeyed,
): Compared {
  if (before === undefined) return { before, digests };
  const [known, now] = [{ ...before.digests }, { ...digests }];
  const pending = before.pending?.digests ?? {};
  // The digests in the status were computed with that key.
  const compared = rekeyed?.former ?? digests;
  for (const id of used) {
    const [was, is, goal] = [known[id], compared[id], pending[id]];
    if (goal !== undefined) {
      const kept = underWay(was, now[id], goal, restartOn);
      if (kept === undefined) delete now[id];
      else now[id] = kept;
    } else if (was !== undefined && !isCounted(was, is, restartOn)) {
      if (is !== undefined) known[id] = is;
      // The source was created without this key. The key counts as new once it exists.
      else if (!isPresent(was)) delete known[id];
    }
  }
  return { before: { ...before, digests: known }, digests: now };
}

/** Whether the value is unchanged, or its change counts. */
function isCounted(was: string, is: string | undefined, restartOn: NonNullable<RolloutSpec["restartOn"]>): boolean {
  if (was === is) return true;
  if (!isPresent(was)) return was === ABSENT && isPresent(is) && restartOn.includes("SourceCreated");
  if (is === undefined) return true;
  if (!isPresent(is)) return is === ABSENT && restartOn.includes("SourceDeleted");
  return !isWithin(is, [was]);
}

/** The digest that a rollout for `goal` compares; undefined for a missing value, for which the rollout waits. */
function underWay(
  was: string | undefined,
  is: string | undefined,
  goal: string,
  restartOn: NonNullable<RolloutSpec["restartOn"]>,
): string | undefined {
  if (is === undefined || is === goal) return is;
  if (!isPresent(is)) return is === ABSENT && restartOn.includes("SourceDeleted") ? is : undefined;
  if (!isPresent(goal)) return is;
  // The last pods with the former version are being deleted, or are late.
  const isOnItsWay = digestsIn(is).some((each) => digestsIn(goal).includes(each));
  return isOnItsWay && isWithin(is, [goal, ...(was === undefined ? [] : [was])]) ? goal : is;
}

function isWithin(digest: string, others: readonly string[]): boolean {
  const known = new Set(others.flatMap(digestsIn));
  return digestsIn(digest).every((each) => known.has(each));
}

/** The input of a decision. */
export interface RolloutInput extends ScheduleInput, StartFacts {
  binding: ScheduleInput["binding"] & { uid: string };
  /** In the order of their steps. */
  dependents: readonly Dependent[];
  before: RolloutStatus | undefined;
  /** The id of the key of the digests. */
  key: string;
  /** The ids of all values that workloads may use. */
  used: ReadonlySet<string>;
  /** Of the values that exist. */
  digests: Digests;
  /** Present if the digests in `before` were computed with another key. */
  rekeyed?: Rekeyed;
  rollFirst: boolean;
  /** Which events count as a change besides a changed value. */
  restartOn?: RolloutSpec["restartOn"];
  /** Why this rollout may restart nothing now, if so. */
  block(pending: Pending, last: string | undefined): RolloutBlock | undefined;
  /** Whether the watch shows the workload at least as new as its last restart. */
  isSeen(dependent: Dependent): boolean;
  /** What the cluster shows of a workload that does not bear its restart any more; undefined if that was not read yet. */
  revertOf(dependent: Dependent): Revert | undefined;
  /** Whether the user asks to try again: by `inlay sync`, or by a change of the binding. */
  isAgain: boolean;
}

export interface RolloutDecision {
  status: RolloutStatus;
  /** The restarts to write now; the status records them already. */
  stamps: PlannedRestart[];
  /**
   * The times to record if none of the restarts can be written: of the rollout's start, of its last restart, and of the last
   * rollout's start.
   */
  unstamped: { began?: string | undefined; restarted?: string | undefined; last?: string | undefined };
  /** Why the workloads that do not restart now wait. */
  block?: RolloutBlock;
  /** The workloads that roll out after this decision: they hold their slots. */
  rolling: Dependent[];
  /** The workloads for which `revertOf` is needed: decide again with it. */
  unread: Dependent[];
  /** The restarts for which `isYounger` is needed: decide again with it. */
  unaged: PlannedRestart[];
  /** What ended or began, for events and metrics. */
  happened: RolloutEvent[];
  requeueAfterMs?: number;
}

const PAUSED = "the workload is paused; it restarts when you resume it";
const REVERTED = "its restart was reverted";
const YOUNGER = "it needs no restart, because its present pods are younger than the change";

export function decideRollout(input: RolloutInput): RolloutDecision {
  const turn = { ...input, ...countedOf(input, input.used, input.restartOn, input.rekeyed) };
  const { before, dependents, digests, steps, unknown } = turn;
  const baseline = baselineOf(before, turn.used, digests, turn.rollFirst, turn.rekeyed, missedBy(before, dependents));
  const starts = startsOf(dependents, digests, turn, baseline.digests);
  for (const id of starts.late) baseline.digests[id] = NEVER;
  const former = baseline.isRenewed ? undefined : before?.pending;
  const gone = goneFrom(former, baseline.digests, digests);
  const changed = { ...gone, ...changedFrom(baseline.digests, digests) };
  const revision = before?.revision ?? 0;
  const rollout = { binding: turn.binding.uid, revision: revision + 1 };
  const stop = stopRecord(turn, before ?? {}, !sameJson(former?.digests ?? {}, changed), turn.isAgain);
  const happened: RolloutEvent[] = baseline.isRenewed ? [{ what: "renewed" }] : [];
  const base: RolloutStatus = {
    digestKeyID: turn.key,
    revision,
    digests: baseline.digests,
    ...(unknown.length > 0 && { unknownNamespaces: unknown.map(({ namespace }) => namespace).sort() }),
    ...(before?.lastStartTime !== undefined && { lastStartTime: before.lastStartTime }),
    ...stop,
  };
  const wasUnknown = new Set(before?.unknownNamespaces);
  const time = timeOf(turn.now);
  const affected = affectedBy(former, wasUnknown, rollout, changed, gone, dependents, steps, time, turn.isSeen, starts);
  const entries = affected.map((each) => judged(turn, each));
  const states: States = new Map(former?.workloads?.map(({ uid, state }) => [uid, state]));
  const unagedOnes = new Set(entries.flatMap(({ dependent, age }) => (age === "unread" ? [dependent] : [])));
  const unread = entries.flatMap(({ dependent, isUnread }) => (isUnread ? [dependent] : []));
  for (const { dependent, entry, isReverted, isNewlyHeld, age } of entries) {
    const { state, message } = entry;
    if (age === "younger" && (states.get(entry.uid) ?? "Waiting") === "Waiting")
      happened.push({
        what: "younger",
        dependent,
        changed: [...dependent.uses].filter((id) => changed[id] !== undefined),
      });
    if (isNewlyHeld) happened.push({ what: "held", dependent, message: message ?? "" });
    if (state === states.get(entry.uid)) continue;
    if (state === "Done" && message !== undefined) happened.push({ what: "held", dependent, message });
    if (state === "Failed")
      happened.push({ what: "failed", reason: failureOf(isReverted), dependent, message: message ?? "" });
  }
  const hidden = hiddenIn(former, dependents, unknown);
  // Workloads that can't be seen may still have the former values.
  const isHeld = unknown.length > 0 && (hidden.length > 0 || Object.keys(changed).length > 0);
  if (!isHeld && entries.every(({ entry }) => entry.state === "Done")) {
    if (former && entries.length > 0) {
      const seconds = Math.max(0, turn.now - Date.parse(former.firstChangeTime)) / 1000;
      happened.push({ what: "ended", workloads: entries.length, seconds });
    }
    const status = ended(turn, base, former, changed, entries);
    const settlesAfterMs = untilSettled(turn, stop);
    const again = settlesAfterMs === undefined ? {} : { requeueAfterMs: settlesAfterMs };
    return { status, stamps: [], unstamped: {}, rolling: [], unread, unaged: [], happened, ...again };
  }
  // A restart from before a crash that is not recorded in the status yet.
  const isFound = entries.some(
    ({ entry, isDue }) => !isDue && entry.stamp !== undefined && (states.get(entry.uid) ?? "Waiting") === "Waiting",
  );
  const intent = intentOf(turn, former, changed, isThrough(turn, entries, states), isFound);
  const held = entries.some(({ isDue }) => isDue) ? turn.block(intent, before?.lastStartTime) : undefined;
  const { stamps, block, stopped } =
    held === undefined
      ? schedule(turn, entries, rollout, changed, former?.digests ?? {}, (dependent) =>
          stoppedUntil(turn, stop, intent.lastChangeTime, dependent),
        )
      : { stamps: [], block: held, stopped: [] };
  if (stop.unsettledTime === undefined)
    happened.push(...stopped.map(({ dependent, message }) => ({ what: "stopped", dependent, message }) as const));
  const unsettled = stopped.length > 0 ? { unsettledTime: stop.unsettledTime ?? intent.lastChangeTime } : {};
  const { startTime, lastRestartTime: restarted } = intent;
  const began = startTime ?? (stamps.length > 0 ? timeOf(turn.now) : undefined);
  // A workload without a stamp rolls out by itself.
  const restarts = entries.filter(({ entry, isDue }) => isDue || entry.stamp !== undefined).length;
  if (began !== undefined && began !== former?.startTime)
    happened.push({ what: "began", workloads: restarts, changed: Object.keys(changed) });
  const pending: Pending = {
    ...intent,
    ...(began !== undefined && { startTime: began }),
    ...(stamps.length > 0 && { lastRestartTime: timeOf(turn.now) }),
    reason: block.reason,
    message: block.message,
    digests: changed,
    workloads: [...entries.map(({ entry }) => entry), ...hidden],
  };
  const withSlot = entries.filter((each) => isRolling(each) && untilLapse(turn, each) > 0);
  const rolling = withSlot.map(({ dependent }) => dependent);
  const times = [
    ...entries.flatMap((each) => [untilTimeout(turn, each), each.requeueAfterMs]),
    ...withSlot.map((each) => untilLapse(turn, each)),
  ];
  const requeueAfterMs = Math.min(...[block.requeueAfterMs, ...times].filter((each) => each !== undefined));
  const last = began ?? base.lastStartTime;
  const status = { ...base, ...unsettled, ...(last !== undefined && { lastStartTime: last }), pending };
  const unstamped = { began: startTime, restarted, last: startTime ?? base.lastStartTime };
  return {
    status,
    stamps,
    block,
    unstamped,
    rolling,
    unread,
    unaged: stamps.filter(({ dependent }) => unagedOnes.has(dependent)),
    happened,
    ...(Number.isFinite(requeueAfterMs) && { requeueAfterMs }),
  };
}

/** No workload is left to restart: the present values become the baseline. */
function ended(
  { now }: RolloutInput,
  base: RolloutStatus,
  former: Pending | undefined,
  changed: Digests,
  entries: Entry[],
): RolloutStatus {
  const isRollout = entries.length > 0 || former?.startTime !== undefined;
  return {
    ...base,
    revision: base.revision + (isRollout ? 1 : 0),
    digests: { ...base.digests, ...changed },
    // The rollout ended before its start was recorded.
    ...(entries.length > 0 && former?.startTime === undefined && { lastStartTime: timeOf(now) }),
  };
}

/** The workloads of a rollout in namespaces that can't be seen at the moment. Their entries stay. */
function hiddenIn(
  former: Pending | undefined,
  dependents: readonly Dependent[],
  unknown: readonly NamespaceProblem[],
): WorkloadStatus[] {
  const namespaces = new Set(unknown.map(({ namespace }) => namespace));
  const seen = new Set(dependents.map(({ version }) => version.uid));
  return (former?.workloads ?? []).filter(({ uid, namespace }) => namespaces.has(namespace) && !seen.has(uid));
}

type States = ReadonlyMap<string, Entry["entry"]["state"]>;

/** Whether every workload was done, or failed in a step that continues. */
const isThrough = ({ steps }: RolloutInput, entries: Entry[], states: States): boolean =>
  entries.every(({ dependent, entry }) => {
    const was = states.get(entry.uid) ?? "Done";
    return was === "Done" || (was === "Failed" && steps[dependent.step]?.onFailure === "Continue");
  });

/** The rollout from now on. Another value restarts the debounce time. If all workloads were done, it is a new rollout. */
function intentOf(
  { now }: RolloutInput,
  former: Pending | undefined,
  changed: Digests,
  wasThrough: boolean,
  isFound: boolean,
): Pending {
  const time = timeOf(now);
  const isSame = former !== undefined && sameJson(former.digests ?? {}, changed);
  const { firstChangeTime: since = time, lastRestartTime: restarted } = former ?? {};
  const began = (isSame || !wasThrough ? former?.startTime : undefined) ?? (isFound ? time : undefined);
  return {
    firstChangeTime: since,
    lastChangeTime: isSame ? former.lastChangeTime : time,
    ...(began !== undefined && { startTime: began }),
    ...(restarted !== undefined && { lastRestartTime: restarted }),
    reason: "",
    message: "",
  };
}

/**
 * Updates the state of a restarted workload from its progress. It has rolled out if it bears the restart, and all of its pods have
 * that template. Once it has rolled out, its later state does not count.
 */
function judged(turn: RolloutInput, each: Entry): Entry {
  const { dependent, entry, isDue } = each;
  if (entry.state === "Waiting" || entry.state === "Done") return each;
  const { paused } = dependent.workload;
  const progress = progressSince(dependent, entry);
  const seen = turn.isSeen(dependent);
  if (seen && progress.state === "Done") {
    if (isDue) return { ...each, entry: waitingAgain(entry) };
    // A workload without a stamp rolls out by a change of its user.
    if (entry.stamp !== undefined && !bears(dependent, entry, turn.binding.uid)) {
      const revert = turn.revertOf(dependent);
      if (revert === undefined) return { ...each, entry: { ...entry, message: REVERTED }, isUnread: true };
      if (!revert.isReplaced) {
        const next = reverted(entry, revert, dependent, turn.now, turn.isAgain);
        return { ...each, ...next, isReverted: next.entry.state === "Failed" };
      }
    }
    const { message: _, ...rest } = entry;
    return { ...each, entry: { ...rest, ...(progress.isUncounted && { message: progress.message }), state: "Done" } };
  }
  // A user decides when its pods restart, so it has no timeout and no slot until then.
  if (paused || (seen && progress.isHeld)) {
    const { restartTime, firstRestartTime = restartTime, ...rest } = entry;
    const message = paused ? PAUSED : progress.message;
    const first = firstRestartTime === undefined ? {} : { firstRestartTime };
    return {
      ...each,
      entry: { ...rest, ...first, state: "Rolling", message },
      isNewlyHeld: !paused && restartTime !== undefined,
    };
  }
  if (entry.restartTime === undefined)
    return judged(turn, { ...each, entry: { ...entry, restartTime: timeOf(turn.now) } });
  const late = Date.parse(entry.restartTime) + timeoutOf(turn, dependent) <= turn.now;
  const failed = seen && progress.state === "Failed";
  if (!failed && !late) return { ...each, entry: { ...entry, state: "Rolling", message: rollingText(each, progress) } };
  if (isDue) return { ...each, entry: waitingAgain(entry) };
  const message = failed ? progress.message : `it did not roll out in time: ${progress.message}`;
  return { ...each, entry: { ...entry, state: "Failed", message } };
}

const rollingText = ({ age }: Entry, { message }: Progress) => (age === "younger" ? `${YOUNGER}; ${message}` : message);

/** Without a status subresource, a write of the status increments the generation, which its controller never catches up with. */
function progressSince({ ref, workload: { progress } }: Dependent, { generation }: Entry["entry"]): Progress {
  const { behind } = progress;
  const isObserved = behind !== undefined && generation !== undefined && behind.observed >= generation;
  return isObserved && !ref.resource.hasStatus ? behind.otherwise : progress;
}

const timeoutOf = ({ steps }: RolloutInput, { step }: Dependent) => steps[step]?.timeoutMs ?? Number.POSITIVE_INFINITY;

/** How many ms remain until a workload that rolls out counts as failed. */
function untilTimeout(turn: RolloutInput, each: Entry): number | undefined {
  const { dependent, entry } = each;
  if (!isRolling(each) || entry.restartTime === undefined) return undefined;
  return Math.max(0, Date.parse(entry.restartTime) + timeoutOf(turn, dependent) - turn.now);
}

/** How many ms remain until its slot in the installation is released. */
const untilLapse = ({ now }: RolloutInput, { entry }: Entry): number =>
  Date.parse(entry.restartTime ?? timeOf(now)) + MAX_SLOT_MS - now;
