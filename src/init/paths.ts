/** Lists the paths of fields that can hold a text: those of an object and those of its schema. Pure. */
import { isWritablePath } from "../api/writable.ts";
import { FieldPath, isNameable, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import type { KindSchema } from "../kube/schemas.ts";
import { schemaIn, typesOf } from "../transform/schema-check.ts";

const MAX_PATHS = 5_000;
const MAX_DEPTH = 12;
/** Not written by bindings, or not by users. */
const LEFT_OUT = ["apiVersion", "kind", "metadata", "status"];

/** The fields of the object first. The metadata and status are left out. */
export function textPaths(object: KubeObject, schema: KindSchema | undefined): string[] {
  const paths = new Set<string>();
  for (const path of livePaths(fieldsToWrite(object), [])) add(paths, path);
  if (schema !== undefined) {
    const schemaAt = schemaIn(schema.root, schema.resolve);
    for (const path of schemaPaths(schemaAt(new FieldPath([])), new FieldPath([]), schemaAt)) add(paths, path);
  }
  return [...paths];
}

function add(paths: Set<string>, path: FieldPath): void {
  if (paths.size < MAX_PATHS && isWritablePath(path)) paths.add(String(path));
}

const fieldsToWrite = (object: object) =>
  Object.fromEntries(Object.entries(object).filter(([key]) => !LEFT_OUT.includes(key)));

function* livePaths(value: unknown, above: readonly Segment[]): Generator<FieldPath> {
  if (above.length > MAX_DEPTH) return;
  if (Array.isArray(value))
    for (const [index, each] of value.entries()) yield* livePaths(each, [...above, elementOf(each, index)]);
  else if (isObject(value)) {
    for (const [key, each] of Object.entries(value))
      if (isNameable(key)) yield* livePaths(each, [...above, keySegment(key)]);
  } else if (value !== null) yield new FieldPath(above);
}

/** By its name, which stays if the order changes. */
function elementOf(element: unknown, index: number): Segment {
  const name = isObject(element) ? element["name"] : undefined;
  if (typeof name !== "string") return { kind: "index", index };
  return { kind: "element", conditions: [{ key: "name", value: name }] };
}

function* schemaPaths(
  schema: OpenApiSchema | undefined,
  above: FieldPath,
  schemaAt: (path: FieldPath) => OpenApiSchema | undefined,
): Generator<FieldPath> {
  for (const key of Object.keys(schema?.properties ?? {})) {
    if (!isNameable(key) || (above.segments.length === 0 && LEFT_OUT.includes(key))) continue;
    const path = above.with(keySegment(key));
    const below = schemaAt(path);
    if (below === undefined || path.segments.length > MAX_DEPTH) continue;
    if (typesOf(below).includes("string")) yield path;
    else yield* schemaPaths(below, path, schemaAt);
  }
}
