/** Replaces the pods of restarted workloads with updateStrategy OnDelete: at most one pod of each at a time. */
import { Problem } from "../../apimachinery/problem.ts";
import { attempt } from "../../kube/access-error.ts";
import type { Client } from "../../kube/client.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import type { RolloutDecision } from "../decide/engine.ts";
import { withWorkloads } from "../decide/intent-status.ts";
import type { RolloutContext } from "../discover/dependents.ts";
import type { Dependent } from "../types.ts";
import { evictNextPod } from "./evict-pod.ts";

/** The interval of retries after the API server refused a request. */
const RETRY_MS = 10_000;

/**
 * For the workloads that restarted and are not done, including failed ones, whose old pods are of no use. `isSeen` says whether
 * the watch shows a workload at least as new as its restart.
 */
export async function replacePods(
  client: Pick<Client, "get" | "list" | "evict">,
  { identity, dependents }: Pick<RolloutContext, "identity" | "dependents">,
  decided: RolloutDecision,
  isSeen: (dependent: Dependent) => boolean,
): Promise<{ done: RolloutDecision; problem?: Problem }> {
  const under = decided.status.pending?.workloads?.filter(({ state }) => state === "Rolling" || state === "Failed");
  const uids = new Set(under?.map(({ uid }) => uid));
  const due = dependents.all.flatMap((dependent) => {
    const { replacing, progress } = dependent.workload;
    const isDue = progress.state !== "Done" && uids.has(dependent.version.uid) && isSeen(dependent);
    return replacing !== undefined && isDue ? [{ dependent, replacing }] : [];
  });
  if (due.length === 0) return { done: decided };
  const messages = new Map<string, { message: string }>();
  let requeueAfterMs = decided.requeueAfterMs ?? Number.POSITIVE_INFINITY;
  let problem: Problem | undefined;
  await mapConcurrent(due, async ({ dependent, replacing }) => {
    const replaced = await attempt(evictNextPod(client, identity, dependent, replacing, Date.now()));
    if (replaced instanceof Problem) problem ??= replaced;
    requeueAfterMs = Math.min(requeueAfterMs, replaced instanceof Problem ? RETRY_MS : replaced.requeueAfterMs);
    const { message } = replaced;
    if (message !== undefined) messages.set(dependent.version.uid, { message });
  });
  const status = withWorkloads(decided.status, (each) => ({ ...each, ...messages.get(each.uid) }));
  return { done: { ...decided, status, requeueAfterMs }, ...(problem && { problem }) };
}
