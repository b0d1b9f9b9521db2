/** Replaces the pods of restarted workloads with updateStrategy OnDelete: at most one pod of each at a time. */
import type { KubeObject } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { EVICTIONS, PODS } from "../../apimachinery/resources.ts";
import { attempt, refusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, listAll } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { nextPod, type PodReplacement, replacingOf } from "../../workloads/pod-replacement.ts";
import { mapConcurrent } from "../../workqueue/map-concurrent.ts";
import type { RolloutDecision } from "../decide/engine.ts";
import { withWorkloads } from "../decide/intent-status.ts";
import type { RolloutContext } from "../discover/dependents.ts";
import type { Dependent } from "../types.ts";

/** When to try again if no watch shows a change, and a message if there is one. */
interface Replaced {
  requeueAfterMs: number;
  message?: string;
}

/** The status of the workload may be late, and no watch shows the state of a PodDisruptionBudget. */
const RETRY_MS = 10_000;
const HELD = "a PodDisruptionBudget permits no eviction of its pods at the moment; Inlay retries";

/**
 * Reads the pods first, so that a deleted one does not count as present. Then reads the workload, so that no pod is evicted that
 * is newer than the known state. Throws Problem.
 */
export async function evictNextPod(
  client: Pick<Client, "get" | "list" | "evict">,
  identity: Identity,
  { ref, version }: Dependent,
  replacing: PodReplacement,
  now: number,
): Promise<Replaced> {
  const { namespace = "" } = ref;
  const isOwn = ({ metadata }: KubeObject) => metadata.ownerReferences?.some(({ uid }) => uid === version.uid);
  const pods = (await listAll(client, identity, PODS, namespace, { labels: replacing.selector })).filter(isOwn);
  let next = nextPod(replacing, pods, now);
  if (next.do === "evict") {
    const object = await getIfExists({ client, identity, ref, verbs: WRITE_VERBS });
    const latest = object?.metadata.uid === version.uid ? replacingOf(object) : undefined;
    next = latest === undefined ? { do: "nothing" } : nextPod(latest, pods, now);
  }
  if (next.do === "wait") return { requeueAfterMs: Math.min(RETRY_MS, next.requeueAfterMs ?? RETRY_MS) };
  if (next.do === "nothing") return { requeueAfterMs: RETRY_MS };
  const { name, uid } = next.pod.metadata;
  try {
    await client.evict(identity, { resource: PODS, namespace, name }, uid);
  } catch (error) {
    if (isStatus(error, 429)) return { requeueAfterMs: RETRY_MS, message: HELD };
    // It was deleted meanwhile, or another pod has its name.
    if (!isStatus(error, 404) && !isStatus(error, 409))
      throw refusal(error, { identity, ref: { resource: EVICTIONS, namespace }, verbs: ["create"] }, "create");
  }
  return { requeueAfterMs: RETRY_MS };
}

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
