/**
 * What status says of a rollout, the values' digests and the workloads as they are come in; what is to be stamped now, what
 * status says from then on, and when to look again goes out. Pure: the same comes out of the same, whoever was killed before.
 */
import { sameJson } from "../model/json.ts";
import type { Dependent, Digests, Hold, Pending, RolloutEvent, RolloutStatus, Step } from "../model/rollout.ts";
import {
  affectedBy,
  again,
  baselineOf,
  changedFrom,
  type Affected as Entry,
  goneFrom,
  type Rekeyed,
  type Rollout,
  stampFor,
} from "./affected.ts";

/** All that a decision is made of. */
export interface Turn {
  now: number;
  /** The uid of the binding. */
  binding: string;
  steps: readonly Step[];
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
  maxConcurrent: number;
  /** Why nothing may be restarted now, if so, for a rollout that is like that. */
  hold(pending: Pending, last: string | undefined): Hold | undefined;
  /** Why this workload may not be restarted at all. */
  refusal(dependent: Dependent): string | undefined;
  /** Whether there is a place for it among all that roll in the installation; if so, it is taken. */
  take(dependent: Dependent): boolean;
  /** Whether it is shown as our last stamp left it, or later. */
  isSeen(dependent: Dependent): boolean;
}

export interface Ordered {
  dependent: Dependent;
  stamp: string;
}

export interface Decided {
  status: RolloutStatus;
  /** To be stamped now; status says so already. */
  stamps: Ordered[];
  /** Those that are rolling out after this: they hold their places. */
  rolling: Dependent[];
  /** What has come to an end, or begun, for events and metrics. */
  happened: RolloutEvent[];
  againMs?: number;
}

const PAUSED = "it is paused, and restarts when it is resumed";

/** So many that failed are told of in one message. Each has its own in status. */
const MOST_TOLD = 3;

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
  const states = new Map(former?.workloads?.map(({ uid, state }) => [uid, state]));
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
    return { status: ended(base, former, changed, entries), stamps: [], rolling: [], happened };
  }
  const noted = notedOf(turn, former, changed);
  const hold = entries.some(({ isDue }) => isDue) ? turn.hold(noted, before?.last) : undefined;
  const next = hold === undefined ? start(turn, entries, rollout, changed) : { stamps: [], said: hold };
  const began = noted.began ?? (next.stamps.length > 0 ? timeOf(turn.now) : undefined);
  if (noted.began === undefined && began !== undefined)
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
  const rolling = entries.filter(isRolling).map(({ dependent }) => dependent);
  const againMs = soonest([next.said.againMs, ...entries.map((each) => untilTimeout(turn, each))]);
  const last = began ?? base.last;
  const status = { ...base, ...(last !== undefined && { last }), pending };
  return { status, stamps: next.stamps, rolling, happened, ...(againMs !== undefined && { againMs }) };
}

/** Nothing is left to restart: the workloads stand for the values of now. */
function ended(base: RolloutStatus, former: Pending | undefined, changed: Digests, entries: Entry[]): RolloutStatus {
  const isRollout = entries.length > 0 || former?.began !== undefined;
  return {
    ...base,
    revision: base.revision + (isRollout ? 1 : 0),
    digests: { ...base.digests, ...changed },
  };
}

/** The rollout as it is known from here on: another value begins its quiet time anew. */
function notedOf({ now }: Turn, former: Pending | undefined, changed: Digests): Pending {
  const time = timeOf(now);
  const isSame = former !== undefined && sameJson(former.digests ?? {}, changed);
  const { since = time, began, restarted } = former ?? {};
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

interface Started {
  stamps: Ordered[];
  said: Hold;
}

/** Begins with what may begin of the first step that is not through. The entries are brought up to that. */
function start(turn: Turn, entries: Entry[], rollout: Rollout, changed: Digests): Started {
  const { steps } = turn;
  const stamps: Ordered[] = [];
  for (const [position, step] of steps.entries()) {
    const group = entries.filter(({ dependent }) => dependent.step === position);
    const open = group.filter(({ entry }) => entry.state !== "Done");
    const failed = open.filter(({ entry }) => entry.state === "Failed");
    if (open.length === 0 || (step.onFailure === "Continue" && failed.length === open.length)) continue;
    const label = step.name === undefined ? "" : `step ${step.name}: `;
    if (failed.length > 0 && step.onFailure === "Halt")
      return {
        stamps,
        said: {
          reason: "RolloutFailed",
          message: `${label}${failedText(failed)}; nothing more is restarted until it has rolled out`,
        },
      };
    const waits = startGroup(turn, group, entries, rollout, changed, stamps);
    return { stamps, said: saidOf(label, group, waits) };
  }
  const failed = entries.filter(({ entry }) => entry.state === "Failed");
  return { stamps, said: { reason: "RolloutFailed", message: failedText(failed) } };
}

/** Stamps what there are places for. Returns why the others wait, if any do. */
function startGroup(
  turn: Turn,
  group: Entry[],
  all: Entry[],
  rollout: Rollout,
  changed: Digests,
  stamps: Ordered[],
): Hold | undefined {
  let places = turn.maxConcurrent - all.filter(isRolling).length;
  let refused: string | undefined;
  // Those that are rolling out anyway have their places.
  for (const each of group.toSorted((a, b) => Number(isRolling(b)) - Number(isRolling(a)))) {
    if (!each.isDue) continue;
    const hasPlace = isRolling(each);
    const why = each.lacks ?? turn.refusal(each.dependent);
    if (why !== undefined) {
      refused ??= why;
      each.entry = { ...each.entry, message: why };
      continue;
    }
    if (places <= 0 && !hasPlace)
      return { reason: "MaxConcurrent", message: "as many are rolling out as spec.rollout.maxConcurrent allows" };
    if (!turn.take(each.dependent))
      return { reason: "MaxConcurrent", message: "as many are rolling out as the installation allows" };
    const stamp = stampFor(rollout, each.dependent, changed);
    const { message: _, ...rest } = each.entry;
    each.entry = { ...rest, state: "Rolling", stamp, since: timeOf(turn.now) };
    each.isDue = false;
    stamps.push({ dependent: each.dependent, stamp });
    if (!hasPlace) places--;
  }
  return refused === undefined ? undefined : { reason: "NotRestarted", message: refused };
}

function saidOf(label: string, group: Entry[], waits: Hold | undefined): Hold {
  const counts = (["Rolling", "Waiting"] as const).flatMap((state) => {
    const { length } = group.filter(({ entry }) => entry.state === state);
    return length === 0 ? [] : `${length} of ${group.length} ${state === "Rolling" ? "rolling out" : "waiting"}`;
  });
  const message = `${label}${counts.join(", ")}${waits ? `: ${waits.message}` : ""}`;
  return { reason: waits?.reason ?? "RollingOut", message };
}

function failedText(failed: Entry[]): string {
  const told = failed
    .slice(0, MOST_TOLD)
    .map(({ entry: { kind, namespace, name, message = "" } }) => `${kind} ${namespace}/${name}: ${message}`);
  const more = failed.length - told.length;
  return `${told.join("; ")}${more > 0 ? `; and ${more} more, see status.rollout.pending.workloads` : ""}`;
}

/** One that is paused takes nobody's place. */
const isRolling = ({ entry, dependent }: Entry) => entry.state === "Rolling" && !dependent.workload.paused;

function timeoutOf({ steps }: Turn, { step }: Dependent): number {
  return steps[step]?.timeoutMs ?? Number.POSITIVE_INFINITY;
}

/** How long until a workload that is rolling out counts as failed. */
function untilTimeout(turn: Turn, each: Entry): number | undefined {
  const { dependent, entry } = each;
  if (!isRolling(each) || entry.since === undefined) return undefined;
  return Math.max(0, Date.parse(entry.since) + timeoutOf(turn, dependent) - turn.now);
}

function soonest(times: readonly (number | undefined)[]): number | undefined {
  const given = times.filter((each) => each !== undefined);
  return given.length === 0 ? undefined : Math.min(...given);
}

/** To the millisecond: two changes in a second are two. */
const timeOf = (ms: number) => new Date(ms).toISOString();
