/**
 * Computes what the status records of a decision before its restarts are written, and after some of them could not be written.
 * Pure.
 */
import { recordId } from "../../api/binding.ts";
import type { RolloutRules } from "../../api/installation.ts";
import type { RolloutSpec, RolloutStatus, WorkloadStatus } from "../../api/rollout.ts";
import { idOf } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { isJob } from "../../workloads/jobs.ts";
import { givenText } from "../../workloads/workload.ts";
import type { Dependent } from "../types.ts";
import type { RolloutDecision } from "./engine.ts";
import { MAX_SLOT_MS, type PlannedRestart } from "./schedule.ts";

const SOON_MS = 1_000;

/**
 * The status before the restarts are written: a leader that reads it after a crash writes the same restarts. Undefined if a crash
 * could neither restart a workload twice nor exceed a limit. Also undefined if the status says so already, as when the same
 * restarts could not be written before: otherwise each retry would write the status.
 */
export function intentStatus(
  { status, stamps }: RolloutDecision,
  stored: RolloutStatus | undefined,
  { stamp: { value } }: RolloutSpec,
  { maxConcurrent, maxConcurrentPerNamespace }: RolloutRules,
): RolloutStatus | undefined {
  const isLimited = (maxConcurrent ?? maxConcurrentPerNamespace) !== undefined;
  const repeats = new Map(status.pending?.workloads?.map(({ uid, reverts }) => [uid, reverts]));
  // The workload itself shows that such a restart was written, unless another client removes that.
  const isVisible = ({ dependent }: PlannedRestart) =>
    value === "Revision" &&
    givenText(dependent) === undefined &&
    !isJob(dependent.ref.resource) &&
    repeats.get(dependent.version.uid) === undefined;
  if (stamps.length === 0 || (!isLimited && stamps.every(isVisible))) return undefined;
  const entries = new Map(stored?.pending?.workloads?.map((each) => [each.uid, each]));
  const isRecorded = ({ dependent, stamp }: PlannedRestart) => {
    const entry = entries.get(dependent.version.uid);
    return entry?.state === "Waiting" && entry.stamp === stamp && entry.reverts === repeats.get(dependent.version.uid);
  };
  const isSame =
    stored?.revision === status.revision && stored?.pending?.lastChangeTime === status.pending?.lastChangeTime;
  if (isSame && stamps.every(isRecorded)) return undefined;
  const due = new Set(stamps.map(({ dependent }) => dependent.version.uid));
  return withWorkloads(status, (each) => (due.has(each.uid) ? { ...each, state: "Waiting" } : each));
}

/** The workloads that were rolling out when the status was written, or were about to. */
export function recordedSlots(status: RolloutStatus | undefined, now: number): { id: string; namespace: string }[] {
  return (status?.pending?.workloads ?? [])
    .filter(({ state, restartTime: since }) => state === "Rolling" || (state === "Waiting" && since !== undefined))
    .filter(({ restartTime: since = "" }) => !(now - Date.parse(since) >= MAX_SLOT_MS))
    .map((each) => ({ id: recordId(each), namespace: each.namespace }));
}

/** If nothing can be decided, a workload keeps its slot while it is seen to roll out. */
export function stillRolling(
  dependents: readonly Dependent[],
  status: RolloutStatus | undefined,
  now: number,
): Dependent[] {
  const recorded = new Set(recordedSlots(status, now).map(({ id }) => id));
  const rolls = ({ progress, paused }: Dependent["workload"]) => progress.state === "Rolling" && !paused;
  return dependents.filter(({ ref, workload }) => recorded.has(idOf(ref)) && rolls(workload));
}

/**
 * The decision without the restarts that could not be written. A `stale` one is decided again when the watch shows the change, or
 * soon.
 */
export function withoutUnwritten(
  unwritten: ReadonlyMap<Dependent, Problem | "stale">,
  decided: RolloutDecision,
): RolloutDecision {
  if (unwritten.size === 0) return decided;
  const reasons = new Map([...unwritten].map(([{ version }, reason]) => [version.uid, reason]));
  const hasNone = unwritten.size === decided.stamps.length;
  const status = withWorkloads(hasNone ? unstamped(decided) : decided.status, (each) => {
    const reason = reasons.get(each.uid);
    if (reason === undefined) return each;
    const { restartTime: _, ...rest } = each;
    return { ...rest, state: "Waiting", ...(reason !== "stale" && { message: reason.brief }) };
  });
  const isStale = [...unwritten.values()].includes("stale");
  const soon = isStale && { requeueAfterMs: Math.min(decided.requeueAfterMs ?? SOON_MS, SOON_MS) };
  const rolling = decided.rolling.filter((dependent) => !unwritten.has(dependent));
  const happened = decided.happened.filter(({ what }) => what !== "began" || status.pending?.startTime !== undefined);
  return { ...decided, status, rolling, happened, ...soon };
}

/** The status without the times of restarts that were not written. */
function unstamped({ status, unstamped: { began, restarted, last } }: RolloutDecision): RolloutStatus {
  const { lastStartTime: _, pending, ...rest } = status;
  if (pending === undefined) return status;
  const { startTime: __, lastRestartTime: ___, ...waiting } = pending;
  const times = {
    ...(began !== undefined && { startTime: began }),
    ...(restarted !== undefined && { lastRestartTime: restarted }),
  };
  return { ...rest, ...(last !== undefined && { lastStartTime: last }), pending: { ...waiting, ...times } };
}

/** How many messages longer than SHORT one status keeps. The other workloads keep only their state. */
const MAX_MESSAGES = 10;
const SHORT = 100;

/** Limits the messages of workloads to the room of a status: in a thousand namespaces, each may have its own command. */
export function withFewMessages(status: RolloutStatus): RolloutStatus {
  const kept = new Set<string>();
  return withWorkloads(status, (each) => {
    const { message = "", ...rest } = each;
    if (isLong(message) && kept.size < MAX_MESSAGES) kept.add(message);
    return !isLong(message) || kept.has(message) ? each : rest;
  });
}

const isLong = (message = "") => message.length > SHORT;

/**
 * Whether the status already shows a refused restart, or would if it had room for the message. Such a workload waits with the
 * stamp of the restart and without a time.
 */
export function refusalsIn(
  status: RolloutStatus | undefined,
): (uid: string, stamp: string | undefined, message: string) => boolean {
  const workloads = status?.pending?.workloads ?? [];
  const entries = new Map(workloads.map((each) => [each.uid, each]));
  const kept = new Set(workloads.flatMap(({ message = "" }) => (isLong(message) ? [message] : [])));
  return (uid, stamp, message) => {
    const entry = entries.get(uid);
    if (entry === undefined || entry.message === message) return entry !== undefined;
    const isTried = entry.state === "Waiting" && entry.stamp === stamp && entry.restartTime === undefined;
    const isCut = isLong(message) && kept.size >= MAX_MESSAGES && !kept.has(message);
    return isTried && isCut && entry.message === undefined;
  };
}

export function withWorkloads(status: RolloutStatus, change: (each: WorkloadStatus) => WorkloadStatus): RolloutStatus {
  const { pending } = status;
  if (pending === undefined) return status;
  return { ...status, pending: { ...pending, workloads: (pending.workloads ?? []).map(change) } };
}
