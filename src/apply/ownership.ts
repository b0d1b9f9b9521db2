/**
 * Reads from managedFields who owns a path, and restricts entries to some paths. fieldsV1 has the format of
 * structured-merge-diff: `f:<name>` for a field, `k:<keys>` for an element of a map list, `v:<value>` for an element of
 * a set, `.` for the object or element itself, `{}` for a leaf. Paths enter map lists by keys, and no other lists.
 */
import { type FieldPath, type Segment, sameSegment } from "../apimachinery/field-path.ts";
import { isObject, parseJson, sameJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../apimachinery/objects.ts";
import { conditionsIn, namesAmong, namesIn, placeOfName } from "./elements.ts";

/** Whether an entry is the manager's, for the object itself and not a subresource; by any operation. */
export function isEntryOf({ manager, subresource }: ManagedFieldsEntry, name: string): boolean {
  return manager === name && !subresource;
}

/**
 * Whether `manager` last wrote in another version of the kind. The API server then also converts the object to that
 * version, and refuses applies of others with fields that it lacks.
 */
export function isOfOtherVersion(live: KubeObject, manager: string): boolean {
  const own = (live.metadata.managedFields ?? []).filter((entry) => isEntryOf(entry, manager));
  return own.some(({ apiVersion = live.apiVersion }) => apiVersion !== live.apiVersion);
}

export function holds(live: KubeObject, manager: string, path: FieldPath): boolean {
  return ownNodes(live, manager, path).length > 0;
}

/** The part of the value at the path that `manager` owns; undefined if none. */
export function heldPart(live: KubeObject, manager: string, path: FieldPath): JsonValue | undefined {
  const value = path.get(live) as JsonValue | undefined;
  const own = ownNodes(live, manager, path);
  return value === undefined || own.length === 0 ? undefined : partOf(value, own);
}

/** Reads only the entries of `manager`: others may be large. */
function ownNodes(live: KubeObject, manager: string, path: FieldPath): JsonObject[] {
  return (live.metadata.managedFields ?? []).flatMap((entry) => {
    const node = isEntryOf(entry, manager) ? fieldsAt(entry.fieldsV1 ?? {}, path) : undefined;
    return node === undefined ? [] : [node];
  });
}

/** The owned part of an object, a map list or a set. Any other list is owned as a whole. */
function partOf(value: JsonValue, held: readonly JsonObject[]): JsonValue {
  const names = [...new Set(held.flatMap((fields) => Object.keys(fields)))].filter((name) => name !== ".");
  const below = (some: readonly string[]): JsonObject[] =>
    held.flatMap((fields) => some.flatMap((name) => (fields[name] === undefined ? [] : [fields[name] as JsonObject])));
  const isOf = (kinds: RegExp) => names.length > 0 && names.every((name) => kinds.test(name));
  if (Array.isArray(value) && isOf(/^[kv]:/)) {
    const known = namesAmong(names);
    return value.flatMap((element) => {
      const own = known.of(element);
      return own.length === 0 ? [] : [partOf(element, below(own))];
    });
  }
  if (!isObject(value) || !isOf(/^f:/)) return value;
  const own = names.filter((name) => Object.hasOwn(value, name.slice(2)));
  return Object.fromEntries(
    own.map((name) => [name.slice(2), partOf(value[name.slice(2)] as JsonValue, below([name]))]),
  );
}

/** The other managers that own the path, or something below it. */
export function otherHolders(live: KubeObject, manager: string, path: FieldPath): string[] {
  return otherEntries(live, manager, path).map((entry) => entry.manager ?? "unknown");
}

/** The other managers that apply the value at the path, and will apply it again. */
export function otherAppliers(live: KubeObject, manager: string, path: FieldPath): string[] {
  return otherEntries(live, manager, path).flatMap((entry) =>
    entry.operation === "Apply" ? (entry.manager ?? "unknown") : [],
  );
}

/**
 * A parent of the path that is a leaf counts as empty: its owner need not own what it contains now. Where the API
 * server treats a parent as one value, no path goes into it.
 */
function otherEntries(live: KubeObject, manager: string, path: FieldPath): ManagedFieldsEntry[] {
  return (live.metadata.managedFields ?? []).filter(
    (entry) => !isEntryOf(entry, manager) && fieldsAt(entry.fieldsV1 ?? {}, path) !== undefined,
  );
}

/** The nodes at a path in the entries of `manager`, and in all others. */
export function nodesAt(live: KubeObject, manager: string, path: FieldPath) {
  const nodes: { own: JsonObject[]; others: JsonObject[] } = { own: [], others: [] };
  for (const entry of live.metadata.managedFields ?? []) {
    const node = fieldsAt(entry.fieldsV1 ?? {}, path);
    if (node !== undefined) nodes[isEntryOf(entry, manager) ? "own" : "others"].push(node);
  }
  return nodes;
}

/** The position of a name of fieldsV1 in a value, with the names of an element's keys; undefined if it is not there. */
export function placeOf(
  name: string,
  value: JsonValue,
): { segment: Exclude<Segment, { kind: "element" }>; keys: string[] } | undefined {
  const segment = segmentOf(name);
  if (segment?.kind === "key") {
    const isThere = typeof value === "object" && value !== null && Object.hasOwn(value, segment.key);
    return isThere ? { segment, keys: [] } : undefined;
  }
  const index = Array.isArray(value) ? placeOfName(value, name) : -1;
  const keys = segment?.kind === "element" ? segment.conditions.map(({ key }) => `f:${key}`) : [];
  return index < 0 ? undefined : { segment: { kind: "index", index }, keys };
}

/** The fieldsV1 of an entry, reduced to the paths and everything below them; undefined if nothing is left. */
export function restrictedTo(fields: JsonObject, paths: readonly FieldPath[]): JsonObject | undefined {
  const segments = paths.map((path) => path.segments);
  return restrict(fields, segments);
}

/** Whether `manager` applies anything beside the paths. */
export function appliesBeyond(live: KubeObject, manager: string, paths: readonly FieldPath[]): boolean {
  const applied = (live.metadata.managedFields ?? []).filter(
    (entry) => isEntryOf(entry, manager) && entry.operation === "Apply",
  );
  return applied.some(({ fieldsV1 = {} }) => !sameJson(restrictedTo(fieldsV1, paths) ?? {}, fieldsV1));
}

/** Whether a node of fieldsV1 is a value, or an object or list of which only itself is owned. */
export const isLeaf = (node: JsonObject) => Object.keys(node).every((key) => key === ".");

function restrict(fields: JsonObject, paths: readonly (readonly Segment[])[]): JsonObject | undefined {
  const left: JsonObject = {};
  for (const [name, child] of Object.entries(fields) as [string, JsonObject][]) {
    const segment = segmentOf(name);
    const below = paths.flatMap(([first, ...rest]) => (segment && first && sameSegment(first, segment) ? [rest] : []));
    if (below.length === 0) continue;
    const kept = isLeaf(child) || below.some((rest) => rest.length === 0) ? child : restrict(child, below);
    if (kept !== undefined)
      left[name] = segment?.kind === "element" ? { ...kept, ...identityOf(child, segment) } : kept;
  }
  if (Object.keys(left).length === 0) return undefined;
  // Without a schema, who applies a field owns the objects around it too.
  return fields["."] === undefined ? left : { ".": fields["."], ...left };
}

/** Who owns a field in an element of a map list must also own the element and its keys. */
function identityOf(fields: JsonObject, { conditions }: Extract<Segment, { kind: "element" }>): JsonObject {
  const names = [".", ...conditions.map(({ key }) => `f:${key}`)];
  return Object.fromEntries(names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])));
}

function fieldsAt(fields: JsonObject, path: FieldPath): JsonObject | undefined {
  let at: JsonObject | undefined = fields;
  for (const segment of path.segments) at = at && childOf(at, segment);
  return at;
}

function childOf(fields: JsonObject, segment: Segment): JsonObject | undefined {
  if (segment.kind === "key") return fields[`f:${segment.key}`] as JsonObject | undefined;
  const name = segment.kind === "element" ? namesIn(fields).by(segment.conditions) : undefined;
  return name === undefined ? undefined : (fields[name] as JsonObject);
}

/** The segment of a name in fieldsV1; undefined for `.`, and for elements of sets. */
export function segmentOf(name: string): Segment | undefined {
  if (name.startsWith("f:")) return { kind: "key", key: name.slice(2) };
  if (!name.startsWith("k:")) return undefined;
  return { kind: "element", conditions: conditionsIn(parseJson(name.slice(2)) as JsonObject) };
}
