/** What is decided of a rollout comes in; what status says of it before its stamps are written, or where they can't be, goes out. Pure. */
import { recordId } from "../../api/binding.ts";
import type { Dependent, RolloutStatus, WorkloadStatus } from "../../api/rollout.ts";
import { idOf } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { Decided } from "./engine.ts";
import { LONGEST_PLACE_MS } from "./schedule.ts";

const SOON_MS = 1_000;

/** The status before the stamps are written: whoever reads it after a crash writes the same ones. */
export function aboutToBe({ status, stamps }: Decided): RolloutStatus {
  const due = new Set(stamps.map(({ dependent }) => dependent.version.uid));
  return withWorkloads(status, (each) => (due.has(each.uid) ? { ...each, state: "Waiting" } : each));
}

/** Whether status says that already, as it does where the same stamps could not be written before: each try would write it again. */
export function isNoted({ status, stamps }: Decided, stored: RolloutStatus | undefined): boolean {
  const entries = new Map(stored?.pending?.workloads?.map((each) => [each.uid, each]));
  return (
    stored?.revision === status.revision &&
    stored?.pending?.changed === status.pending?.changed &&
    stamps.every(({ dependent, stamp }) => {
      const entry = entries.get(dependent.version.uid);
      return entry?.state === "Waiting" && entry.stamp === stamp;
    })
  );
}

/** The workloads that were rolling out when status was written, or were about to. */
export function recordedPlaces(status: RolloutStatus | undefined, now: number): { id: string; namespace: string }[] {
  const hasLapsed = (since: string | undefined) => now - Date.parse(since ?? "") >= LONGEST_PLACE_MS;
  return (status?.pending?.workloads ?? [])
    .filter(({ state, since }) => state === "Rolling" || (state === "Waiting" && since !== undefined))
    .filter(({ since }) => !hasLapsed(since))
    .map((each) => ({ id: recordId(each), namespace: each.namespace }));
}

/** Where nothing can be decided, a workload has its place for as long as it is seen to roll out: others wait for it. */
export function stillRolling(
  dependents: readonly Dependent[],
  status: RolloutStatus | undefined,
  now: number,
): Dependent[] {
  const recorded = new Set(recordedPlaces(status, now).map(({ id }) => id));
  const rolls = ({ progress, paused }: Dependent["workload"]) => progress.state === "Rolling" && !paused;
  return dependents.filter(({ ref, workload }) => recorded.has(idOf(ref)) && rolls(workload));
}

/** What was decided, where some stamps could not be written. What is `stale` is decided anew, by the event that tells of it or soon. */
export function without(unwritten: ReadonlyMap<Dependent, Problem | "stale">, decided: Decided): Decided {
  if (unwritten.size === 0) return decided;
  const reasons = new Map([...unwritten].map(([{ version }, reason]) => [version.uid, reason]));
  const hasNone = unwritten.size === decided.stamps.length;
  const status = withWorkloads(hasNone ? unstamped(decided) : decided.status, (each) => {
    const reason = reasons.get(each.uid);
    if (reason === undefined) return each;
    const { since: _, ...rest } = each;
    return { ...rest, state: "Waiting", ...(reason !== "stale" && { message: reason.message }) };
  });
  const againMs = [...unwritten.values()].includes("stale") ? Math.min(decided.againMs ?? SOON_MS, SOON_MS) : undefined;
  const rolling = decided.rolling.filter((dependent) => !unwritten.has(dependent));
  const happened = decided.happened.filter(({ what }) => what !== "began" || status.pending?.began !== undefined);
  return { ...decided, status, rolling, happened, ...(againMs !== undefined && { againMs }) };
}

/** Nothing has begun by a restart that was not made. */
function unstamped({ status, unstamped: { began, restarted, last } }: Decided): RolloutStatus {
  const { last: _, pending, ...rest } = status;
  if (pending === undefined) return status;
  const { began: __, restarted: ___, ...waiting } = pending;
  const times = { ...(began !== undefined && { began }), ...(restarted !== undefined && { restarted }) };
  return { ...rest, ...(last !== undefined && { last }), pending: { ...waiting, ...times } };
}

/** What was decided, with what some workloads wait for, by their uids. */
export function saying(messages: ReadonlyMap<string, string>, decided: Decided): Decided {
  const status = withWorkloads(decided.status, (each) => {
    const message = messages.get(each.uid);
    return message === undefined ? each : { ...each, message };
  });
  return { ...decided, status };
}

function withWorkloads(status: RolloutStatus, change: (each: WorkloadStatus) => WorkloadStatus): RolloutStatus {
  const { pending } = status;
  if (pending === undefined) return status;
  return { ...status, pending: { ...pending, workloads: (pending.workloads ?? []).map(change) } };
}
