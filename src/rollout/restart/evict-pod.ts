/** A workload comes in that leaves its pods to whoever deletes them; one old pod is evicted, as the binding's account, if all others are ready. */
import type { KubeObject } from "../../apimachinery/objects.ts";
import { EVICTIONS, PODS } from "../../apimachinery/resources.ts";
import { refusal } from "../../kube/access-error.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, listAll } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { nextPod, type PodReplacement, replacingOf } from "../../workloads/pod-replacement.ts";
import type { Dependent } from "../types.ts";

/** What came of it: when to look again, if nothing tells of that, and what it waits for, if that is not told otherwise. */
interface Replaced {
  requeueAfterMs: number;
  message?: string;
}

/** What its controller says of its pods may be late, and of a budget nobody tells. */
const LOOK_AGAIN_MS = 10_000;
const HELD = "a PodDisruptionBudget lets none of its pods go at the moment";

/**
 * Pods are read as they are, so that one that has just gone is not taken to be there. Then the workload, so that none is
 * evicted that is newer than what was seen of it. Throws Problem.
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
    const object = await getIfExists({ client, identity, ref, verbs: ["get"] });
    const latest = object?.metadata.uid === version.uid ? replacingOf(object) : undefined;
    next = latest === undefined ? { do: "nothing" } : nextPod(latest, pods, now);
  }
  if (next.do !== "evict")
    return { requeueAfterMs: Math.min(LOOK_AGAIN_MS, (next.do === "wait" && next.requeueAfterMs) || LOOK_AGAIN_MS) };
  const { name, uid } = next.pod.metadata;
  try {
    await client.evict(identity, { resource: PODS, namespace, name }, uid);
  } catch (error) {
    if (isStatus(error, 429)) return { requeueAfterMs: LOOK_AGAIN_MS, message: HELD };
    // It has gone by itself, or another one of its name is there.
    if (!isStatus(error, 404) && !isStatus(error, 409))
      throw refusal(error, { identity, ref: { resource: EVICTIONS, namespace }, verbs: ["create"] }, "create");
  }
  return { requeueAfterMs: LOOK_AGAIN_MS };
}
