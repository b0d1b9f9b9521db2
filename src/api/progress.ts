/**
 * Derives the conditions Reconciling and Stalled from the other conditions of an object, by the rules of kstatus: each exists only while
 * it is True, and never both. Pure.
 */
import type { ObjectMeta } from "../apimachinery/objects.ts";
import { retryPolicies } from "../apimachinery/problem.ts";
import { type ConditionReason, storedReason } from "../apimachinery/reasons.ts";
import type { Condition } from "./binding.ts";
import { conditionOf } from "./verdict.ts";

type ProgressCondition = ReturnType<typeof conditionOf<"Reconciling" | "Stalled">>;
/** The types of the conditions that are derived here. */
export const PROGRESS_TYPES: readonly string[] = ["Reconciling", "Stalled"];

/** The conditions that say whether an object has reached its wanted state. */
const JUDGED: readonly string[] = ["Accepted", "Ready", "RolledOut"];

/** Of a workload that does not roll out. */
const FAILED: readonly string[] = ["RestartReverted", "RolloutFailed"];

/** A retry changes nothing: a user must change the object, or repair a workload. */
export const isStalled = (reason: ConditionReason): boolean =>
  FAILED.includes(reason) || (retryPolicies as Readonly<Record<string, string>>)[reason] === "Terminal";

/**
 * The conditions with Reconciling or Stalled at their end, where a condition is not True. An object that a user suspended has neither,
 * because Inlay does not work on it.
 */
export function withProgress<C extends Condition>(
  object: { metadata: Pick<ObjectMeta, "generation">; status?: { conditions?: Condition[] } },
  conditions: readonly C[],
  now: Date,
): (C | ProgressCondition)[] {
  const open = conditions.filter(({ type, status }) => JUDGED.includes(type) && status !== "True");
  if (open.some(({ type, reason }) => type === "Ready" && reason === "Suspended")) return [...conditions];
  const stalled = open.find(({ reason }) => isStalled(storedReason(reason)));
  const cause = stalled ?? open.find(({ reason }) => reason !== "Suspended");
  if (cause === undefined) return [...conditions];
  const verdict = { ready: "True", reason: storedReason(cause.reason), message: cause.message } as const;
  const type = stalled ? "Stalled" : "Reconciling";
  return [...conditions, conditionOf(type, object, verdict, now)];
}
