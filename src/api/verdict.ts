/** Builds the conditions of objects. Pure. */
import type { ObjectMeta } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { ConditionReason } from "../apimachinery/reasons.ts";
import type { Condition } from "./binding.ts";

export interface Verdict {
  /** Unknown until something evaluates it. */
  ready: Condition["status"];
  reason: ConditionReason;
  message: string;
  /** What the verdict is about, if it is about a problem. */
  problem?: Problem | undefined;
}

/** In characters. Longer messages are cut, so that people can read the status. */
export const MAX_MESSAGE_LENGTH = 1024;

/** An object with conditions in its status. */
export interface WithConditions {
  metadata: Pick<ObjectMeta, "generation">;
  status?: { conditions?: Condition[] };
}

/** The condition of an object. The time of its last transition changes only with its status. */
export function conditionOf<T extends string>(
  type: T,
  { metadata, status }: WithConditions,
  { ready, reason, message }: Verdict,
  now: Date,
) {
  const before = status?.conditions?.find((each) => each.type === type);
  return {
    type,
    status: ready,
    reason,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    observedGeneration: metadata.generation ?? 0,
    lastTransitionTime:
      before?.status === ready ? before.lastTransitionTime : now.toISOString().replace(/\.\d+Z$/, "Z"),
  };
}
