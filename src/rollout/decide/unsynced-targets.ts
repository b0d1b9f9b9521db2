/**
 * Decides which workloads have to wait for the targets of their binding. A target without the new values holds back all
 * workloads; a target in one of many namespaces holds back those of its namespace. Pure.
 */
import { isApart, type SecretBinding, type Target } from "../../api/binding.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { RolloutBlock } from "../types.ts";

export interface UnsyncedTargets {
  /** Why all workloads wait. */
  everywhere: RolloutBlock | undefined;
  /** Why the workloads of single namespaces wait. */
  namespaces: ReadonlyMap<string, string>;
}

/** An object of a target that was tried, or a part of a target whose objects can't be known. */
export interface Tried {
  target: Pick<Target, "namespaceSelector">;
  namespace?: string | undefined;
  problem?: Problem | undefined;
}

/** `account` is why Inlay can't impersonate the account of the binding. */
export function unsyncedTargets(
  binding: Pick<SecretBinding, "metadata">,
  account: Problem | undefined,
  tried: readonly Tried[],
): UnsyncedTargets {
  let first = account;
  const namespaces = new Map<string, string>();
  for (const { target, namespace = "", problem } of tried) {
    if (problem === undefined) continue;
    const message = `the target in its namespace does not hold the new values yet: ${problem.brief}`;
    if (!isApart(target, namespace || undefined, binding)) first ??= problem;
    else if (!namespaces.has(namespace)) namespaces.set(namespace, message);
  }
  const message = first && "not every target holds the new values yet; see the condition Ready";
  return { everywhere: message === undefined ? undefined : { reason: "TargetsNotSynced", message }, namespaces };
}
