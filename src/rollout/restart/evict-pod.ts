/** Evicts one old pod of a workload with updateStrategy OnDelete, as the binding's account, if all other pods are ready. */
import type { KubeObject } from "../../apimachinery/objects.ts";
import { EVICTIONS, PODS } from "../../apimachinery/resources.ts";
import { refusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, listAll } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { nextPod, type PodReplacement, replacingOf } from "../../workloads/pod-replacement.ts";
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
  if (next.do !== "evict")
    return { requeueAfterMs: Math.min(RETRY_MS, (next.do === "wait" && next.requeueAfterMs) || RETRY_MS) };
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
