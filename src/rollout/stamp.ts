/**
 * A workload comes in, with what to stamp on it; its pod template's annotation goes out, written as the binding's account by
 * the one field manager of all rollouts. The same stamp again changes nothing, and restarts nothing.
 */
import type { Client } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import { refusal, WRITE_VERBS } from "../kube/refusal.ts";
import type { FieldPath } from "../model/field-path.ts";
import type { JsonObject, KubeObject } from "../model/kube-object.ts";
import { type Dependent, ROLLOUT_MANAGER } from "../model/rollout.ts";

/** Returns the workload as it is then: its metadata. Throws Problem. */
export async function stamp(
  client: Client,
  identity: Identity,
  { ref, version, template }: Dependent,
  annotation: string,
  value: string,
): Promise<KubeObject> {
  const metadata = { annotations: { [annotation]: value } };
  try {
    return await client.apply(identity, ref, version.uid, nested(template, { metadata }), {
      fieldManager: ROLLOUT_MANAGER,
      force: true,
    });
  } catch (error) {
    throw refusal(error, { identity, ref, verbs: WRITE_VERBS }, "patch");
  }
}

/** `{spec: {template: inner}}` for `spec.template`. */
function nested(path: FieldPath, inner: JsonObject): JsonObject {
  return path.segments.reduceRight<JsonObject>((below, segment) => {
    if (segment.kind !== "key") throw new Error(`${path} goes through a list`);
    return { [segment.key]: below };
  }, inner);
}
