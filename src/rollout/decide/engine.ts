/**
 * What status says of a rollout, the values' digests and the workloads as they are come in; what is to be stamped now, what
 * status says from then on, and when to look again goes out. Pure: the same comes out of the same, whoever was killed before.
 */

import type { Dependent, Digests, Hold, Pending, RolloutEvent, RolloutStatus } from "../../api/rollout.ts";
import { sameJson } from "../../apimachinery/json.ts";
import {
  affectedBy,
  again,
  baselineOf,
  changedFrom,
  type Affected as Entry,
  goneFrom,
  type Rekeyed,
} from "./affected.ts";
import { isRolling, LONGEST_PLACE_MS, type Ordered, type Starting, start, timeOf } from "./schedule.ts";

/** All that a decision is made of. */
export interface Turn extends Starting {
  /** The uid of the binding. */
  binding: string;
  /** In the order of their steps. */
  dependents: readonly Dependent[];
  before: RolloutStatus | undefined;
  /** The id of the key by which the digests are made. */
  key: string;
  /** Of what is there. */
  digests: Digests;
  /** Given where the digests in `before` are by another key. */
  rekeyed?: Rekeyed;
  rollFirst: boolean;
  /** Why nothing may be restarted now, if so, for a rollout that is like that. */
  hold(pending: Pending, last: string | undefined): Hold | undefined;
  /** Whether it is shown as our last stamp left it, or later. */
  isSeen(dependent: Dependent): boolean;
}

export interface Decided {
  status: RolloutStatus;
  /** To be stamped now; status says so already. */
  stamps: Ordered[];
  /** When it began, when the last restart was made, and when the last rollout began, if none of the stamps can be written. */
  unstamped: Record<"began" | "restarted" | "last", string | undefined>;
  /** Those that are rolling out after this: they hold their places. */
  rolling: Dependent[];
  /** What has come to an end, or begun, for events and metrics. */
  happened: RolloutEvent[];
  againMs?: number;
}

const PAUSED = "it is paused, and restarts when it is resumed";

export function decideRollout(turn: Turn): Decided {
  const { before, dependents, digests, steps } = turn;
  const used = new Set(dependents.flatMap(({ uses }) => [...uses]));
  const baseline = baselineOf(before, used, digests, turn.rollFirst, turn.rekeyed);
  const former = baseline.isRenewed ? undefined : before?.pending;
  const gone = goneFrom(former, baseline.digests, digests);
  const changed = { ...gone, ...changedFrom(baseline.digests, digests) };
  const revision = before?.revision ?? 0;
  const rollout = { binding: turn.binding, revision: revision + 1 };
  const happened: RolloutEvent[] = baseline.isRenewed ? [{ what: "renewed" }] : [];
  const base: RolloutStatus = {
    key: turn.key,
    revision,
    digests: baseline.digests,
    ...(before?.last !== undefined && { last: before.last }),
  };
  const entries = affectedBy(former, rollout, changed, gone, dependents, steps, timeOf(turn.now), turn.isSeen).map(
    (each) => judged(turn, each),
  );
  const states: States = new Map(former?.workloads?.map(({ uid, state }) => [uid, state]));
  for (const { dependent, entry } of entries) {
    const { state, message } = entry;
    if (state === states.get(entry.uid)) continue;
    if (state === "Done") happened.push({ what: "done", dependent, ...(message !== undefined && { message }) });
    if (state === "Failed") happened.push({ what: "failed", dependent, message: message ?? "" });
  }
  if (entries.every(({ entry }) => entry.state === "Done")) {
    if (former && entries.length > 0) {
      const seconds = Math.max(0, turn.now - Date.parse(former.since)) / 1000;
      happened.push({ what: "ended", workloads: entries.length, seconds });
    }
    const status = ended(turn, base, former, changed, entries);
    const unstamped = { began: undefined, restarted: undefined, last: status.last };
    return { status, stamps: [], unstamped, rolling: [], happened };
  }
  // What was stamped before a crash, and does not stand in status yet.
  const isFound = entries.some(({ entry, isDue }) => !isDue && (states.get(entry.uid) ?? "Waiting") === "Waiting");
  const noted = notedOf(turn, former, changed, isThrough(turn, entries, states), isFound);
  const hold = entries.some(({ isDue }) => isDue) ? turn.hold(noted, before?.last) : undefined;
  const next =
    hold === undefined ? start(turn, entries, rollout, changed, former?.digests ?? {}) : { stamps: [], said: hold };
  const began = noted.began ?? (next.stamps.length > 0 ? timeOf(turn.now) : undefined);
  if (began !== undefined && began !== former?.began)
    happened.push({ what: "began", workloads: entries.length, changed: Object.keys(changed) });
  const pending: Pending = {
    ...noted,
    ...(began !== undefined && { began }),
    ...(next.stamps.length > 0 && { restarted: timeOf(turn.now) }),
    reason: next.said.reason,
    message: next.said.message,
    digests: changed,
    workloads: entries.map(({ entry }) => entry),
  };
  const placed = entries.filter((each) => isRolling(each) && untilLapse(turn, each) > 0);
  const rolling = placed.map(({ dependent }) => dependent);
  const times = [...entries.map((each) => untilTimeout(turn, each)), ...placed.map((each) => untilLapse(turn, each))];
  const againMs = soonest([next.said.againMs, ...times]);
  const last = began ?? base.last;
  const status = { ...base, ...(last !== undefined && { last }), pending };
  const { stamps } = next;
  const unstamped = { began: noted.began, restarted: noted.restarted, last: noted.began ?? base.last };
  return { status, stamps, unstamped, rolling, happened, ...(againMs !== undefined && { againMs }) };
}

/** Nothing is left to restart: the workloads stand for the values of now. */
function ended(
  { now }: Turn,
  base: RolloutStatus,
  former: Pending | undefined,
  changed: Digests,
  entries: Entry[],
): RolloutStatus {
  const isRollout = entries.length > 0 || former?.began !== undefined;
  return {
    ...base,
    revision: base.revision + (isRollout ? 1 : 0),
    digests: { ...base.digests, ...changed },
    // Nobody had seen it begin.
    ...(entries.length > 0 && former?.began === undefined && { last: timeOf(now) }),
  };
}

type States = ReadonlyMap<string, Entry["entry"]["state"]>;

/** Whether nothing was left to do but for what failed and holds nothing back. */
const isThrough = ({ steps }: Turn, entries: Entry[], states: States): boolean =>
  entries.every(({ dependent, entry }) => {
    const was = states.get(entry.uid) ?? "Done";
    return was === "Done" || (was === "Failed" && steps[dependent.step]?.onFailure === "Continue");
  });

/** The rollout as it is known from here on: another value begins its quiet time anew, and another rollout where all is through. */
function notedOf(
  { now }: Turn,
  former: Pending | undefined,
  changed: Digests,
  wasThrough: boolean,
  isFound: boolean,
): Pending {
  const time = timeOf(now);
  const isSame = former !== undefined && sameJson(former.digests ?? {}, changed);
  const { since = time, restarted } = former ?? {};
  const began = (isSame || !wasThrough ? former?.began : undefined) ?? (isFound ? time : undefined);
  return {
    since,
    changed: isSame ? former.changed : time,
    ...(began !== undefined && { began }),
    ...(restarted !== undefined && { restarted }),
    reason: "",
    message: "",
  };
}

/** A workload that was restarted, by what it says of itself. Once it has rolled out, nothing it says later counts. */
function judged(turn: Turn, each: Entry): Entry {
  const { dependent, entry, isDue } = each;
  if (entry.state === "Waiting" || entry.state === "Done") return each;
  const { progress } = dependent.workload;
  const seen = turn.isSeen(dependent);
  if (seen && progress.state === "Done") {
    const { message: _, ...rest } = entry;
    const left = dependent.workload.onDelete ? { message: progress.message } : {};
    if (isDue) return { ...each, entry: again(entry) };
    return { ...each, entry: { ...rest, ...left, state: "Done" } };
  }
  // It restarts when somebody resumes it.
  if (dependent.workload.paused) return { ...each, entry: { ...entry, state: "Rolling", message: PAUSED } };
  // Until then it could not roll out.
  if (entry.message === PAUSED) return judged(turn, { ...each, entry: resumed(entry, turn.now) });
  const late = Date.parse(entry.since ?? "") + timeoutOf(turn, dependent) <= turn.now;
  const failed = seen && progress.state === "Failed";
  if (failed || late) {
    const message = failed ? progress.message : `it did not roll out in time: ${progress.message}`;
    if (isDue) return { ...each, entry: again(entry) };
    return { ...each, entry: { ...entry, state: "Failed", message } };
  }
  return { ...each, entry: { ...entry, state: "Rolling", message: progress.message } };
}

function resumed({ message: _, ...entry }: Entry["entry"], now: number): Entry["entry"] {
  return { ...entry, since: timeOf(now) };
}

function timeoutOf({ steps }: Turn, { step }: Dependent): number {
  return steps[step]?.timeoutMs ?? Number.POSITIVE_INFINITY;
}

/** How long until a workload that is rolling out counts as failed. */
function untilTimeout(turn: Turn, each: Entry): number | undefined {
  const { dependent, entry } = each;
  if (!isRolling(each) || entry.since === undefined) return undefined;
  return Math.max(0, Date.parse(entry.since) + timeoutOf(turn, dependent) - turn.now);
}

/** How long it holds a place in the installation yet. */
const untilLapse = ({ now }: Turn, { entry }: Entry): number =>
  Date.parse(entry.since ?? timeOf(now)) + LONGEST_PLACE_MS - now;

function soonest(times: readonly (number | undefined)[]): number | undefined {
  const given = times.filter((each) => each !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}
