/** The manifest of an object that a binding makes comes in; a Problem goes out if it says what is not its own to say. */
import { FieldPath } from "../apimachinery/field-path.ts";
import { isObject, MAX_VALUE_LEVELS, nestsDeeper } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { assertReadablePath } from "./writable.ts";

/** Carried by every object that a binding made: the binding's uid. */
export const CREATED_BY = "inlay.dev/created-by";

const refused = new Map([
  ["apiVersion", "it stands in the target"],
  ["kind", "it stands in the target"],
  ["status", "it belongs to the controller of the object"],
]);

/** Throws Problem: InvalidBinding, and ForbiddenPath for what the API server takes and never shows again. */
export function assertManifest(group: string, kind: string, manifest: JsonObject): void {
  if (nestsDeeper(manifest, MAX_VALUE_LEVELS))
    throw new Problem(
      "InvalidBinding",
      `the manifest nests more than ${MAX_VALUE_LEVELS} levels deep; make it flatter`,
    );
  for (const key of Object.keys(manifest)) {
    const why = refused.get(key);
    if (why !== undefined) throw new Problem("InvalidBinding", `${key} can't stand in a manifest: ${why}`);
    assertReadablePath(group, kind, new FieldPath([{ kind: "key", key }]));
  }
  const { metadata } = manifest;
  if (metadata === undefined) return;
  if (!isObject(metadata)) throw new Problem("InvalidBinding", "metadata of a manifest is an object");
  for (const [key, map] of Object.entries(metadata)) {
    if (key !== "labels" && key !== "annotations") {
      const why = key === "name" || key === "namespace" ? "; it stands in the target" : "";
      throw new Problem("InvalidBinding", `metadata of a manifest has labels and annotations, and no ${key}${why}`);
    }
    if (isObject(map) && Object.hasOwn(map, CREATED_BY)) {
      throw new Problem("InvalidBinding", `${CREATED_BY} is Inlay's own to write; take it out of the manifest`);
    }
  }
}
