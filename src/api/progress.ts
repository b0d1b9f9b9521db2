/**
 * Derives the conditions Reconciling and Stalled from the other conditions of an object, by the rules of kstatus: each exists only while
 * it is True, and never both. They are also the clock for problems that a user must fix, which survives a restart of the controller.
 * Pure.
 */
import { fixedBy, mostUrgent, storedReason } from "../apimachinery/reasons.ts";
import type { Condition } from "./binding.ts";
import { conditionOf, type WithConditions } from "./verdict.ts";

type ProgressCondition = ReturnType<typeof conditionOf<"Reconciling" | "Stalled">>;
/** The types of the conditions that are derived here. */
export const PROGRESS_TYPES: readonly string[] = ["Reconciling", "Stalled"];

/** How long a problem that a user must fix may last before the object is Stalled. Tools that create a missing object take less. */
export const STALLED_AFTER_MS = 60_000;

/** The conditions that say whether an object has reached its wanted state. */
const JUDGED: readonly string[] = ["Accepted", "Ready", "RolledOut"];

/**
 * The conditions with Reconciling or Stalled at their end, where a condition is not True. An object that a user suspended has neither,
 * because Inlay does not work on it. The time of both is that of the last progress: another reason, or another spec.
 */
export function withProgress<C extends Condition>(
  object: WithConditions,
  conditions: readonly C[],
  now: Date,
): (C | ProgressCondition)[] {
  const { generation = 0 } = object.metadata;
  const open = conditions.filter(({ type, status }) => JUDGED.includes(type) && status !== "True");
  if (open.some(({ type, reason }) => type === "Ready" && reason === "Suspended")) return [...conditions];
  const waiting = open.filter(({ reason }) => reason !== "Suspended");
  // A condition of the former spec stays while it is not known what the present one leads to.
  const isFormer = ({ observedGeneration }: C) => (observedGeneration ?? generation) !== generation;
  const reasonOf = (each: C) => (isFormer(each) ? "Reconciling" : each.reason);
  const cause = mostUrgent(waiting, reasonOf);
  if (cause === undefined) return [...conditions];
  const reason = reasonOf(cause);
  const before = progressBefore(object, reason, now);
  const status = { conditions: before === undefined ? [] : [before] };
  const type = isStalled(reason, before, now) ? "Stalled" : "Reconciling";
  // Tools show the message of Stalled. That of Reconciling would only repeat the other condition.
  const message = type === "Stalled" ? cause.message : `see the condition ${cause.type}`;
  const verdict = { ready: "True", reason: storedReason(reason), message } as const;
  return [...conditions, conditionOf(type, { metadata: object.metadata, status }, verdict, now)];
}

/** The stored condition, if there was no progress since. A time in the future is of another clock. */
function progressBefore({ metadata, status }: WithConditions, reason: string, now: Date): Condition | undefined {
  const before = status?.conditions?.find(({ type }) => PROGRESS_TYPES.includes(type));
  if (before?.reason !== reason || before.observedGeneration !== (metadata.generation ?? 0)) return undefined;
  return msSince(before, now) >= 0 ? before : undefined;
}

function isStalled(reason: string, before: Condition | undefined, now: Date): boolean {
  const by = fixedBy(reason);
  if (by !== "User" || before === undefined) return by === "Edit";
  return before.type === "Stalled" || msSince(before, now) >= STALLED_AFTER_MS;
}

const msSince = ({ lastTransitionTime }: Condition, now: Date): number =>
  now.getTime() - Date.parse(lastTransitionTime);

/** Whether an object with this status becomes Stalled now, without having waited. */
export function isStalledAtOnce(object: WithConditions, status: { conditions?: Condition[] }, now: Date): boolean {
  const stalled = status.conditions?.find(({ type, reason }) => type === "Stalled" && fixedBy(reason) === "Edit");
  return stalled !== undefined && progressBefore(object, stalled.reason, now)?.type !== "Stalled";
}

/** In how many ms an object with this status becomes Stalled if nothing changes. Undefined if it does not. */
export function untilStalled(status: { conditions?: Condition[] } | undefined, now: Date): number | undefined {
  const waiting = status?.conditions?.find(({ type, reason }) => type === "Reconciling" && fixedBy(reason) === "User");
  return waiting && Math.max(0, STALLED_AFTER_MS - msSince(waiting, now));
}
