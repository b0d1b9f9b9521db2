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

/** The entries of `manager`. Others may be large. */
export const ownEntries = ({ metadata }: KubeObject, manager: string): ManagedFieldsEntry[] =>
  (metadata.managedFields ?? []).filter((entry) => isEntryOf(entry, manager));

export const otherEntries = ({ metadata }: KubeObject, manager: string): ManagedFieldsEntry[] =>
  (metadata.managedFields ?? []).filter((entry) => !isEntryOf(entry, manager));

const isApply = ({ operation }: ManagedFieldsEntry) => operation === "Apply";

export const fieldsOf = ({ fieldsV1 = {} }: ManagedFieldsEntry): JsonObject => fieldsV1;

/** The union of several sets of fields. */
export function merged(trees: readonly JsonObject[]): JsonObject {
  const all: JsonObject = {};
  for (const [key, below] of trees.flatMap((tree) => Object.entries(tree)))
    all[key] = merged([...(isObject(all[key]) ? [all[key]] : []), below as JsonObject]);
  return all;
}

/** The children of several nodes with these names. */
export const childrenOf = (nodes: readonly JsonObject[], names: readonly string[]): JsonObject[] =>
  nodes.flatMap((node) => names.flatMap((name) => (Object.hasOwn(node, name) ? [node[name] as JsonObject] : [])));

/**
 * Whether `manager` last wrote in another version of the kind. The API server then also converts the object to that
 * version, and refuses applies of others with fields that it lacks.
 */
export const isOfOtherVersion = (live: KubeObject, manager: string): boolean =>
  ownEntries(live, manager).some(({ apiVersion = live.apiVersion }) => apiVersion !== live.apiVersion);

export const holds = (live: KubeObject, manager: string, path: FieldPath): boolean =>
  nodesIn(ownEntries(live, manager), path).length > 0;

/** The part of the value at the path that `manager` owns; undefined if none. */
export function heldPart(live: KubeObject, manager: string, path: FieldPath): JsonValue | undefined {
  const value = path.get(live) as JsonValue | undefined;
  const own = nodesIn(ownEntries(live, manager), path);
  return value === undefined || own.length === 0 ? undefined : partOf(value, own);
}

/** The nodes at a path in these entries. */
const nodesIn = (entries: readonly ManagedFieldsEntry[], path: FieldPath): JsonObject[] =>
  entries.map((entry) => fieldsAt(fieldsOf(entry), path)).filter((node) => node !== undefined);

/** The owned part of an object, a map list or a set. Any other list is owned as a whole. */
function partOf(value: JsonValue, held: readonly JsonObject[]): JsonValue {
  const names = [...new Set(held.flatMap((fields) => Object.keys(fields)))].filter((name) => name !== ".");
  const isOf = (kinds: RegExp) => names.length > 0 && names.every((name) => kinds.test(name));
  if (Array.isArray(value) && isOf(/^[kv]:/)) {
    const known = namesAmong(names);
    return value.flatMap((element) => {
      const own = known.of(element);
      return own.length === 0 ? [] : [partOf(element, childrenOf(held, own))];
    });
  }
  if (!isObject(value) || !isOf(/^f:/)) return value;
  const own = names.filter((name) => Object.hasOwn(value, name.slice(2)));
  return Object.fromEntries(
    own.map((name) => [name.slice(2), partOf(value[name.slice(2)] as JsonValue, childrenOf(held, [name]))]),
  );
}

/** The other managers that own the path, or something below it. */
export const otherHolders = (live: KubeObject, manager: string, path: FieldPath): string[] =>
  managersOf(otherEntries(live, manager), path);

/** The other managers that apply the value at the path, and will apply it again. */
export function otherAppliers(live: KubeObject, manager: string, path: FieldPath): string[] {
  return managersOf(otherEntries(live, manager).filter(isApply), path);
}

/**
 * A parent of the path that is a leaf counts as empty: its owner need not own what it contains now. Where the API
 * server treats a parent as one value, no path goes into it.
 */
const managersOf = (entries: readonly ManagedFieldsEntry[], path: FieldPath): string[] =>
  entries.flatMap((entry) => (fieldsAt(fieldsOf(entry), path) === undefined ? [] : (entry.manager ?? "unknown")));

/** The nodes at a path in the entries of `manager`, and in all others. */
export const nodesAt = (live: KubeObject, manager: string, path: FieldPath) => ({
  own: nodesIn(ownEntries(live, manager), path),
  others: nodesIn(otherEntries(live, manager), path),
});

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
  return index < 0 ? undefined : { segment: { kind: "index", index }, keys: keysOf(segment) };
}

/** The fieldsV1 of an entry, reduced to the paths and everything below them; undefined if nothing is left. */
export function restrictedTo(fields: JsonObject, paths: readonly FieldPath[]): JsonObject | undefined {
  const segments = paths.map((path) => path.segments);
  return restrict(fields, segments);
}

/** Whether `manager` applies anything beside the paths. */
export function appliesBeyond(live: KubeObject, manager: string, paths: readonly FieldPath[]): boolean {
  return ownEntries(live, manager)
    .filter(isApply)
    .map(fieldsOf)
    .some((fields) => !sameJson(restrictedTo(fields, paths) ?? {}, fields));
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
      left[name] = segment?.kind === "element" ? { ...kept, ...identityOf(child, keysOf(segment)) } : kept;
  }
  if (Object.keys(left).length === 0) return undefined;
  // Without a schema, who applies a field owns the objects around it too.
  return fields["."] === undefined ? left : { ".": fields["."], ...left };
}

/** Who owns a field in an element of a map list must also own the element and its keys, by their names in fieldsV1. */
export const identityOf = (fields: JsonObject, keys: readonly string[]): JsonObject =>
  Object.fromEntries([".", ...keys].flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])));

/** The names of the keys of an element in fieldsV1. */
const keysOf = (segment: Segment | undefined): string[] =>
  segment?.kind === "element" ? segment.conditions.map(({ key }) => `f:${key}`) : [];

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
