/**
 * Runs a CronJob at once, as the binding's account, before the restart annotation is written to its template. After a crash in
 * between, the second try finds the same Job. If the annotation were written first, the run would be lost.
 */
import { ROLLOUT_MANAGER } from "../../api/rollout.ts";
import type { ObjectRef } from "../../apimachinery/objects.ts";
import { JOBS } from "../../apimachinery/resources.ts";
import { refusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { isSuspended, manualJobName, manualJobOf } from "../../workloads/manual-job.ts";
import type { Dependent } from "../types.ts";

/** `stamp` identifies the restart. Returns `stale` if the CronJob was recreated. Throws Problem. */
export async function runCronJob(
  client: Pick<Client, "get" | "createObject">,
  identity: Identity,
  { ref, version }: Pick<Dependent, "ref" | "version">,
  { annotation, stamp }: { annotation: string; stamp: string },
): Promise<"stale" | undefined> {
  const cronJob = await getIfExists({ client, identity, ref, verbs: WRITE_VERBS });
  if (cronJob?.metadata.uid !== version.uid) return "stale";
  if (isSuspended(cronJob)) return undefined;
  const namespace = ref.namespace as string;
  const job: ObjectRef = { resource: JOBS, namespace, name: manualJobName(cronJob, stamp) };
  try {
    await client.createObject(identity, job, manualJobOf(cronJob, { [annotation]: stamp }), ROLLOUT_MANAGER);
  } catch (error) {
    // An earlier try has created it.
    if (isStatus(error, 409) && error.reason === "AlreadyExists") return undefined;
    throw refusal(error, { identity, ref: { resource: JOBS, namespace }, verbs: ["create"] }, "create");
  }
  return undefined;
}
