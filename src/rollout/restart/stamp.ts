/**
 * Writes a restart to a workload's pod template annotation, or to its restart field, as the binding's account, with one field
 * manager for all rollouts. The same stamp again changes nothing and restarts nothing.
 */
import { LAST_RELOADED_FROM } from "../../api/reloader.ts";
import { ROLLOUT_MANAGER } from "../../api/rollout.ts";
import type { FieldPath } from "../../apimachinery/field-path.ts";
import type { JsonObject, JsonValue, KubeObject } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { refusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { restartText } from "../../workloads/restart-field.ts";
import type { Dependent } from "../types.ts";

type Stamped = Pick<Dependent, "ref" | "version" | "workload" | "stampAt" | "isRestartField">;

/** A workload whose status changes more often than that during a few requests is retried later. */
const MAX_TRIES = 5;

/**
 * Returns the workload afterwards: its metadata. A controller that was paused and wakes while another one leads may have an older
 * stamp than the present one. So the write requires the version that was decided on, or a later one with the same spec; otherwise
 * it returns `stale`, and the restart is decided again. Throws Problem. `recordOf` returns a text to write beside the stamp.
 */
export async function stamp(
  client: Pick<Client, "get" | "apply">,
  identity: Identity,
  dependent: Stamped,
  value: string,
  recordOf?: (now: KubeObject) => string | undefined,
): Promise<KubeObject | "stale"> {
  const { ref, version, stampAt } = dependent;
  const use = { identity, ref, verbs: WRITE_VERBS };
  let { resourceVersion } = version;
  try {
    let record: string | undefined;
    if (recordOf !== undefined) {
      const now = await getIfExists({ client, ...use });
      if (now === undefined || !isAsDecided(now, dependent)) return "stale";
      resourceVersion = now.metadata.resourceVersion;
      record = recordOf(now);
    }
    const leaves = nested(stampAt, value, record === undefined ? {} : { [LAST_RELOADED_FROM]: record });
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      try {
        return await client.apply(identity, ref, version.uid, guarded(leaves, resourceVersion), OURS);
      } catch (error) {
        // A workload that was recreated under the same name causes 422, as an invalid one does.
        if (!isStatus(error, 409) && !isStatus(error, 422)) throw error;
        const now = await getIfExists({ client, ...use });
        if (now === undefined || !isAsDecided(now, dependent)) return "stale";
        if (isStatus(error, 422)) throw error;
        resourceVersion = now.metadata.resourceVersion;
      }
    }
  } catch (error) {
    throw refusal(error, use, "patch");
  }
  const message = `${ref.resource.kind} ${ref.name} changes faster than it can be restarted; Inlay retries`;
  throw new Problem("Unavailable", message);
}

const OURS = { fieldManager: ROLLOUT_MANAGER, force: true };

const guarded = (leaves: JsonObject, resourceVersion: string): JsonObject => ({
  ...leaves,
  metadata: { ...(leaves["metadata"] as JsonObject | undefined), resourceVersion },
});

/** By its generation, which a change of metadata does not increment. */
function isAsDecided(now: KubeObject, { version, workload, stampAt, isRestartField }: Stamped): boolean {
  const { uid, generation } = now.metadata;
  const isSameSpec = uid === version.uid && generation !== undefined && generation === version.generation;
  return isSameSpec && (!isRestartField || restartText(now, stampAt) === workload.restart);
}

/** `{spec: {restartAt: value}}` for `spec.restartAt`, with `beside` added at the last level. */
function nested(path: FieldPath, value: string, beside: JsonObject): JsonObject {
  const last = path.segments.length - 1;
  return path.segments.reduceRight<JsonValue>((below, segment, position) => {
    if (segment.kind !== "key") throw new Error(`${path} goes through a list`);
    return { ...(position === last && beside), [segment.key]: below };
  }, value) as JsonObject;
}
