/** Builds objects with managedFields for the tests of this folder. */
import { FieldPath, type Segment } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../../../src/apimachinery/objects.ts";
import type { ListType, TargetShape } from "../../../src/transform/target-shape.ts";

/** The field manager of the binding under test. */
export const OURS = "inlay/registry/harbor-s3";

/** An entry as the API server writes it. A path that is the parent of other paths in the entry is owned itself too. */
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
      const name = nameOf(segment);
      at[name] ??= segment.kind === "element" ? identityOf(segment) : {};
      at = at[name] as JsonObject;
    }
    ends.push(at);
  }
  for (const end of ends) if (Object.keys(end).length > 0) end["."] = {};
  return root;
}

type Element = Extract<Segment, { kind: "element" }>;

function nameOf(segment: Segment): string {
  if (segment.kind === "key") return `f:${segment.key}`;
  if (segment.kind === "index") return `i:${segment.index}`;
  const keys = segment.conditions.map(({ key, value }) => [key, /^\d+$/.test(value) ? Number(value) : value]);
  return `k:${JSON.stringify(Object.fromEntries(keys))}`;
}

/** An element is owned with its keys. */
const identityOf = ({ conditions }: Element): JsonObject =>
  Object.fromEntries([".", ...conditions.map(({ key }) => `f:${key}`)].map((name) => [name, {}]));

/** A list of elements with the names n0, n1 and so on, and how often a name was read. */
export function countedList(length: number): { list: JsonObject[]; reads: () => number } {
  let reads = 0;
  const list = Array.from({ length }, (_, n) => {
    const element = {
      value: "old",
      get name() {
        reads++;
        return `n${n}`;
      },
    };
    return element as JsonObject;
  });
  return { list, reads: () => reads };
}

/** A schema with these lists, required leaves, atomic objects, and defaults. All other lists are atomic. */
export function shape(
  lists: Record<string, ListType> = {},
  required: readonly string[] = [],
  atomic: readonly string[] = [],
  defaults: Record<string, JsonValue> = {},
): TargetShape {
  const listAt = (list: FieldPath) => lists[String(list)] ?? { kind: "atomic" as const };
  return {
    listAt,
    isAtomic: (path) => atomic.includes(String(path)),
    isNormalizedQuantity: (path) => String(path).startsWith("spec.limits"),
    isRequired: (path) => required.includes(String(path)),
    isImmutable: () => false,
    defaultAt: (path) => defaults[String(path)],
    elementOf: (_, conditions) =>
      Object.fromEntries(conditions.map(({ key, value }) => [key, /^\d+$/.test(value) ? Number(value) : value])),
  };
}

/** A map list with these keys. */
export const byKeys = (...keys: string[]): ListType => ({ kind: "map", keys });

export function liveObject(fields: JsonObject, managedFields: ManagedFieldsEntry[] = []): KubeObject {
  return {
    apiVersion: "goharbor.io/v1beta1",
    kind: "HarborCluster",
    metadata: { name: "harbor", namespace: "registry", uid: "uid-1", resourceVersion: "7", managedFields },
    ...fields,
  };
}
