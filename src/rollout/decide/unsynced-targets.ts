/**
 * Says why workloads have to wait for the targets of their binding: a target that does not hold the new values yet holds back all
 * of them, or those of its namespace where it is one of many. Pure.
 */
import { isApart, type SecretBinding, type Target } from "../../api/binding.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { RolloutBlock } from "../types.ts";

export interface UnsyncedTargets {
  /** What holds back all workloads. */
  everywhere: RolloutBlock | undefined;
  /** What holds back those of single namespaces. */
  namespaces: ReadonlyMap<string, string>;
}

/** An object of a target that was tried, or a part of a target of which it is not known which objects it is. */
interface Tried {
  target: Pick<Target, "namespaceSelector">;
  namespace?: string | undefined;
  problem?: Problem | undefined;
}

/** `account` is why nothing can be done as the account of the binding. */
export function unsyncedTargets(
  binding: Pick<SecretBinding, "metadata">,
  account: Problem | undefined,
  tried: readonly Tried[],
): UnsyncedTargets {
  let first = account;
  const namespaces = new Map<string, string>();
  for (const { target, namespace = "", problem } of tried) {
    if (problem === undefined) continue;
    const message = `the target in its namespace does not hold the new values yet: ${problem.message}`;
    if (!isApart(target, namespace || undefined, binding)) first ??= problem;
    else if (!namespaces.has(namespace)) namespaces.set(namespace, message);
  }
  const message = first && `not every target holds the new values yet: ${first.message}`;
  return { everywhere: message === undefined ? undefined : { reason: "TargetsNotSynced", message }, namespaces };
}
