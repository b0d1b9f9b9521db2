/** Refuses values of Secrets that the API server would copy into managedFields: elements of sets, keys of map lists. */
import { type FieldPath, isNameable } from "../apimachinery/field-path.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { PlannedField } from "./plan-types.ts";

type SchemaAt = (path: FieldPath) => OpenApiSchema | undefined;

/** `schemaWithin` finds the schema of a part of the value, and remembers no path to it. Throws Problem("InvalidPath"). */
export function assertNotInManagedFields(
  { path, value, fromSecret }: PlannedField,
  schemaAt: SchemaAt,
  schemaWithin: SchemaAt,
): void {
  if (!fromSecret) return;
  const above = listAbove(path, schemaAt);
  if (above === "none") return;
  const list = above ?? listWithin(path, value.reveal(), schemaWithin);
  if (list === undefined) return;
  const what = listType(list, schemaWithin) === "set" ? "an element" : "a key of an element";
  // The path to a list within the value may contain keys of the Secret.
  const where = path.startsWith(list) ? list : "a list in the value";
  throw new Problem("InvalidPath", {
    at: [String(path)],
    what: `the API server copies ${what} of ${where} into metadata.managedFields in plain text, which all readers of the object can see, so a binding can't write a value of a Secret there`,
    fix: "take the value from a ConfigMap, or write another field",
  });
}

const isAtomic = (path: FieldPath, schemaAt: SchemaAt) => schemaAt(path)?.["x-kubernetes-map-type"] === "atomic";
const listType = (path: FieldPath, schemaAt: SchemaAt) => schemaAt(path)?.["x-kubernetes-list-type"] ?? "atomic";

/**
 * The list to which the path belongs. `none` if it is in a list or an object that is one value: managedFields contain
 * nothing of it.
 */
function listAbove(path: FieldPath, schemaAt: SchemaAt): FieldPath | "none" | undefined {
  for (const [n, segment] of path.segments.entries()) {
    const list = path.upTo(n);
    if (segment.kind === "key" && isAtomic(list, schemaAt)) return "none";
    if (segment.kind === "key") continue;
    const type = listType(list, schemaAt);
    if (type !== "map") return type === "set" ? list : "none";
    const [next, ...more] = path.segments.slice(n + 1);
    const keys = schemaAt(list)?.["x-kubernetes-list-map-keys"] ?? [];
    // The value also contains the keys of an element that the path names by index.
    const isKey = next === undefined ? segment.kind === "index" : next.kind === "key" && keys.includes(next.key);
    if (isKey && more.length === 0) return list;
  }
  return undefined;
}

function listWithin(path: FieldPath, value: JsonValue, schemaAt: SchemaAt): FieldPath | undefined {
  if (typeof value !== "object" || value === null || isAtomic(path, schemaAt)) return undefined;
  if (Array.isArray(value)) return value.length > 0 && listType(path, schemaAt) !== "atomic" ? path : undefined;
  for (const [key, child] of Object.entries(value)) {
    if (typeof child !== "object" || !isNameable(key)) continue;
    const found = listWithin(path.with({ kind: "key", key }), child, schemaAt);
    if (found !== undefined) return found;
  }
  return undefined;
}
