/** Objects with managedFields for the tests of this folder: who holds which paths comes in, the object goes out. */
import { FieldPath } from "../../../src/model/field-path.ts";
import type { JsonObject, KubeObject, ManagedFieldsEntry } from "../../../src/model/kube-object.ts";

/** The manager of the binding under test. */
export const OURS = "inlay/registry/harbor-s3";

/** An entry as the API server writes it. A path that others of the same entry go through is held by itself too. */
export function entry(
  manager: string,
  paths: readonly (string | FieldPath)[],
  more: Partial<ManagedFieldsEntry> = {},
): ManagedFieldsEntry {
  return { manager, operation: "Apply", fieldsType: "FieldsV1", fieldsV1: fieldsOf(paths), ...more };
}

export function fieldsOf(paths: readonly (string | FieldPath)[]): JsonObject {
  const root: JsonObject = {};
  const ends: JsonObject[] = [];
  for (const path of paths) {
    let at = root;
    for (const segment of (typeof path === "string" ? FieldPath.parse(path) : path).segments) {
      const key = segment.kind === "key" ? `f:${segment.key}` : "i:0";
      at[key] ??= {};
      at = at[key] as JsonObject;
    }
    ends.push(at);
  }
  for (const end of ends) if (Object.keys(end).length > 0) end["."] = {};
  return root;
}

export function liveObject(fields: JsonObject, managedFields: ManagedFieldsEntry[] = []): KubeObject {
  return {
    apiVersion: "goharbor.io/v1beta1",
    kind: "HarborCluster",
    metadata: { name: "harbor", namespace: "registry", uid: "uid-1", resourceVersion: "7", managedFields },
    ...fields,
  };
}
