/**
 * managedFields come in; who holds a path, and the same entries without some paths, go out. The form of fieldsV1 is that
 * of structured-merge-diff: `f:<name>` for a field, `.` for the object itself, `{}` for a leaf.
 */
import { FieldPath } from "../model/field-path.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../model/kube-object.ts";

/** Our own entry: written by server-side apply, on the object itself. */
export function isEntryOf(entry: ManagedFieldsEntry, manager: string): boolean {
  return entry.manager === manager && entry.operation === "Apply" && !entry.subresource;
}

/** Whether `manager` holds the path by server-side apply. */
export function holds(entries: readonly ManagedFieldsEntry[], manager: string, path: FieldPath): boolean {
  return entries.some((entry) => isEntryOf(entry, manager) && reach(entry.fieldsV1 ?? {}, path) === "node");
}

/** Of what stands at the path, the part that `manager` holds by server-side apply; undefined if that is nothing. */
export function heldPart(live: KubeObject, manager: string, path: FieldPath): JsonValue | undefined {
  const value = path.get(live) as JsonValue | undefined;
  const entry = (live.metadata.managedFields ?? []).find((each) => isEntryOf(each, manager));
  const fields = fieldsAt(entry?.fieldsV1 ?? {}, path);
  return value === undefined || fields === undefined ? undefined : partOf(value, fields);
}

/** Without what others hold in an object; a list is taken whole. */
function partOf(value: JsonValue, fields: JsonObject): JsonValue {
  const names = Object.keys(fields).filter((key) => key !== ".");
  const isGranular = names.length > 0 && names.every((name) => name.startsWith("f:"));
  if (!isGranular || typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const held = names.map((name) => [name.slice(2), fields[name] as JsonObject] as const);
  return Object.fromEntries(
    held.flatMap(([key, below]) => (Object.hasOwn(value, key) ? [[key, partOf(value[key] as JsonValue, below)]] : [])),
  );
}

/** Who but `manager` holds the path, or a parent of it as a whole, or something below it. */
export function otherHolders(live: KubeObject, manager: string, path: FieldPath): string[] {
  const entries = live.metadata.managedFields ?? [];
  const held = (entry: ManagedFieldsEntry) => {
    const end = reach(entry.fieldsV1 ?? {}, path);
    return end === "node" || (end instanceof FieldPath && isWhole(live, end));
  };
  return entries
    .filter((entry) => !isEntryOf(entry, manager) && held(entry))
    .map((entry) => entry.manager ?? "unknown");
}

/**
 * Whether an object that stands as a leaf in managedFields has all that is in it. One that was written as `{}` stands
 * there like that too, and has nothing.
 */
function isWhole(live: KubeObject, path: FieldPath): boolean {
  const isEmpty = Object.keys(path.get(live) ?? {}).length === 0;
  const names = (entry: ManagedFieldsEntry) => {
    const fields = fieldsAt(entry.fieldsV1 ?? {}, path);
    return Object.keys(fields ?? {}).some((key) => key !== ".");
  };
  return !isEmpty && !(live.metadata.managedFields ?? []).some(names);
}

/** What stands under `manager`'s name and is neither one of the paths, nor above or below one. */
export function heldBeside(live: KubeObject, manager: string, paths: readonly FieldPath[]): FieldPath[] {
  const walk = (fields: JsonObject, at: FieldPath | undefined): FieldPath[] => {
    if (at && paths.some((path) => at.startsWith(path))) return [];
    const children = Object.entries(fields).filter(([key]) => key.startsWith("f:"));
    if (at && children.length === 0) return paths.some((path) => path.startsWith(at)) ? [] : [at];
    return children.flatMap(([key, child]) => {
      const segment = { kind: "key", key: key.slice("f:".length) } as const;
      return walk(child as JsonObject, new FieldPath([...(at?.segments ?? []), segment]));
    });
  };
  const own = (live.metadata.managedFields ?? []).filter((entry) => isEntryOf(entry, manager));
  return own.flatMap(({ fieldsV1 }) => walk(fieldsV1 ?? {}, undefined));
}

/** Our entry's fieldsV1 without the paths, or undefined when nothing is left in it. Other fields keep their place. */
export function withoutPaths(fields: JsonObject, paths: readonly FieldPath[]): JsonObject | undefined {
  const left = structuredClone(fields);
  for (const path of paths) remove(left, path.segments.map(fieldKey));
  return Object.keys(left).length === 0 ? undefined : left;
}

/** `node`: the path itself is in the set. A path: that parent is in it as a leaf. */
function reach(fields: JsonObject, path: FieldPath): "node" | FieldPath | "nothing" {
  let at = fields;
  for (const [depth, segment] of path.segments.entries()) {
    const next = at[fieldKey(segment)];
    if (next === undefined) {
      return depth > 0 && Object.keys(at).length === 0 ? new FieldPath(path.segments.slice(0, depth)) : "nothing";
    }
    at = next as JsonObject;
  }
  return "node";
}

function fieldsAt(fields: JsonObject, path: FieldPath): JsonObject | undefined {
  let at: JsonObject | undefined = fields;
  for (const segment of path.segments) at = at?.[fieldKey(segment)] as JsonObject | undefined;
  return at;
}

function fieldKey(segment: FieldPath["segments"][number]): string {
  return segment.kind === "key" ? `f:${segment.key}` : `i:${segment.kind === "index" ? segment.index : -1}`;
}

/** Takes a path out, and the parents that it leaves empty. Says whether it did: what is absent leaves nothing empty. */
function remove(fields: JsonObject, [first, ...rest]: string[]): boolean {
  if (first === undefined || fields[first] === undefined) return false;
  const child = fields[first] as JsonObject;
  if (rest.length > 0) {
    if (!remove(child, rest)) return false;
    if (Object.keys(child).some((key) => key !== ".")) return true;
  }
  delete fields[first];
  return true;
}
