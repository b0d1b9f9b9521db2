/** Checks the manifest of an object that a binding creates: it may contain only what belongs in a manifest. */
import { FieldPath } from "../apimachinery/field-path.ts";
import { isObject, MAX_VALUE_LEVELS, nestsDeeper } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { assertReadablePath } from "./writable.ts";

/** On every object that a binding created: the binding's uid. */
export const CREATED_BY = "inlay.dev/created-by";

const refused = new Map([
  ["apiVersion", "the target sets it"],
  ["kind", "the target sets it"],
  ["status", "it belongs to the controller of the object"],
]);

/** Throws Problem: InvalidBinding, or ForbiddenPath for fields that the API server accepts but never returns. */
export function assertManifest(group: string, kind: string, manifest: JsonObject): void {
  if (nestsDeeper(manifest, MAX_VALUE_LEVELS))
    throw invalid(`the manifest has more than ${MAX_VALUE_LEVELS} levels; nest fewer objects and lists`);
  for (const key of Object.keys(manifest)) {
    const why = refused.get(key);
    if (why !== undefined) throw invalid(`a manifest can't contain ${key}: ${why}; remove it`);
    assertReadablePath(group, kind, new FieldPath([{ kind: "key", key }]));
  }
  const { metadata } = manifest;
  if (metadata === undefined) return;
  if (!isObject(metadata)) throw invalid("metadata of a manifest must be an object");
  for (const [key, map] of Object.entries(metadata)) {
    if (key !== "labels" && key !== "annotations") {
      const why = key === "name" || key === "namespace" ? ", which the target sets" : "";
      throw invalid(`metadata of a manifest can contain only labels and annotations; remove ${key}${why}`);
    }
    if (isObject(map) && Object.hasOwn(map, CREATED_BY)) {
      throw invalid(`only Inlay writes ${CREATED_BY}; remove it from the manifest`);
    }
  }
}

const invalid = (what: string): Problem => new Problem("InvalidBinding", what);
