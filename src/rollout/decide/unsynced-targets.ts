/**
 * Says why workloads have to wait for the targets of their binding: a target that does not hold the new values yet holds back all
 * of them, or those of its namespace where it is one of many. Pure.
 */
import type { TargetStatus } from "../../api/binding.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { RolloutBlock } from "../types.ts";

export interface UnsyncedTargets {
  /** What holds back all workloads. */
  everywhere: RolloutBlock | undefined;
  /** What holds back those of single namespaces. */
  namespaces: ReadonlyMap<string, string>;
}

/** A target that was tried, or a part of a target of which it is not known which objects it is. */
type Tried = { problem?: Problem } & (
  | { record: Pick<TargetStatus, "namespace" | "selected"> }
  | { namespace?: string; problem: Problem }
);

/** `own` is the namespace of the binding, and `account` why nothing can be done as its account. */
export function unsyncedTargets(
  own: string | undefined,
  account: Problem | undefined,
  tried: readonly Tried[],
): UnsyncedTargets {
  let first = account;
  const namespaces = new Map<string, string>();
  for (const each of tried) {
    if (each.problem === undefined) continue;
    const namespace = "record" in each ? (each.record.selected ? each.record.namespace : undefined) : each.namespace;
    if (namespace === undefined || namespace === own) first ??= each.problem;
    else if (!namespaces.has(namespace))
      namespaces.set(
        namespace,
        `the target in its namespace does not hold the new values yet: ${each.problem.message}`,
      );
  }
  const message = first && `not every target holds the new values yet: ${first.message}`;
  return { everywhere: message === undefined ? undefined : { reason: "TargetsNotSynced", message }, namespaces };
}
