/**
 * Writes a restart to a workload's pod template annotation, or to its restart field, as the binding's account, with one field
 * manager for all rollouts. A stamp is never released, so it needs no apply, and a merge patch costs the API server less. The
 * same stamp again changes nothing and restarts nothing.
 */
import { LAST_RELOADED_FROM } from "../../api/reloader.ts";
import { ROLLOUT_MANAGER } from "../../api/rollout.ts";
import type { FieldPath } from "../../apimachinery/field-path.ts";
import { fieldsAt } from "../../apimachinery/fields.ts";
import { describeObject, type JsonObject, type JsonValue, type KubeObject } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { refusal, WRITE_VERBS } from "../../kube/access-error.ts";
import { isNotFound, isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { restartText } from "../../workloads/restart-field.ts";
import { RESTARTS_ANNOTATION } from "../../workloads/restart-times.ts";
import type { Dependent } from "../types.ts";

type Stamped = Pick<Dependent, "ref" | "version" | "workload" | "stampAt" | "isRestartField">;

/** A workload whose status changes more often than that during a few requests is retried later. */
const MAX_TRIES = 5;

/**
 * Returns the workload afterwards: its metadata. A controller that was paused and wakes while another one leads may have an older
 * stamp than the present one. So the write requires the version that was decided on, or a later one with the same spec; otherwise
 * it returns `stale`, and the restart is decided again. Throws Problem. `recordOf` returns the record to write beside the stamp. If
 * it returns undefined, the former record is removed. Without `recordOf`, no record changes. `restarts` is the annotation with the
 * times of the last restarts.
 */
export async function stamp(
  client: Pick<Client, "get" | "mergeFields">,
  identity: Identity,
  dependent: Stamped,
  value: string,
  recordOf?: (now: KubeObject) => string | undefined,
  restarts?: string,
): Promise<KubeObject | "stale"> {
  const { ref, version, stampAt } = dependent;
  const use = { identity, ref, verbs: WRITE_VERBS };
  let { resourceVersion } = version;
  try {
    let beside: JsonObject = {};
    if (recordOf !== undefined) {
      const now = await getIfExists({ client, ...use });
      if (now === undefined || !isAsDecided(now, dependent)) return "stale";
      resourceVersion = now.metadata.resourceVersion;
      beside = { [LAST_RELOADED_FROM]: recordOf(now) ?? null };
    }
    const leaves = withRestarts(nested(stampAt, value, beside), restarts);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      try {
        const patch = guarded(leaves, { uid: version.uid, resourceVersion });
        return await client.mergeFields(identity, ref, patch, ROLLOUT_MANAGER);
      } catch (error) {
        if (isNotFound(error)) return "stale";
        // Also of a workload that was recreated under the same name: the API server compares resourceVersions first.
        if (!isStatus(error, 409)) throw error;
        const now = await getIfExists({ client, ...use });
        if (now === undefined || !isAsDecided(now, dependent)) return "stale";
        resourceVersion = now.metadata.resourceVersion;
      }
    }
  } catch (error) {
    const problem = refusal(error, use, "patch");
    // Its message names no object: a target has its name before it.
    const isNameless = problem.reason === "VersionDropsFields";
    throw isNameless ? problem.within(describeObject(ref.resource.kind, ref.namespace, ref.name)) : problem;
  }
  const message = `${ref.resource.kind} ${ref.name} changes faster than it can be restarted; Inlay retries`;
  throw new Problem("Unavailable", message);
}

/** The stamp may be another annotation of the workload itself. */
function withRestarts(leaves: JsonObject, restarts: string | undefined): JsonObject {
  if (restarts === undefined) return leaves;
  const metadata = fieldsAt(leaves, "metadata");
  const annotations = { [RESTARTS_ANNOTATION]: restarts, ...fieldsAt(metadata, "annotations") };
  return { ...leaves, metadata: { ...metadata, annotations } };
}

const guarded = (leaves: JsonObject, guard: JsonObject): JsonObject => ({
  ...leaves,
  metadata: { ...(leaves["metadata"] as JsonObject | undefined), ...guard },
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
