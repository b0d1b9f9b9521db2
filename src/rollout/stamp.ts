/**
 * A workload comes in, with what to stamp on it; its pod template's annotation, or the field that it restarts on, goes out,
 * written as the binding's account by the one field manager of all rollouts. The same stamp again changes nothing, and restarts nothing.
 */
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import { refusal, WRITE_VERBS } from "../kube/refusal.ts";
import type { FieldPath } from "../model/field-path.ts";
import type { JsonObject, JsonValue, KubeObject } from "../model/kube-object.ts";
import { type Dependent, ROLLOUT_MANAGER } from "../model/rollout.ts";

/** Returns the workload as it is then: its metadata. Throws Problem. */
export async function stamp(
  client: Client,
  identity: Identity,
  { ref, version, stampAt }: Dependent,
  value: string,
): Promise<KubeObject> {
  try {
    return await client.apply(identity, ref, version.uid, nested(stampAt, value), {
      fieldManager: ROLLOUT_MANAGER,
      force: true,
    });
  } catch (error) {
    throw refusal(error, { identity, ref, verbs: WRITE_VERBS }, "patch");
  }
}

/** `{spec: {restartAt: value}}` for `spec.restartAt`. */
function nested(path: FieldPath, value: string): JsonObject {
  return path.segments.reduceRight<JsonValue>((below, segment) => {
    if (segment.kind !== "key") throw new Error(`${path} goes through a list`);
    return { [segment.key]: below };
  }, value) as JsonObject;
}
