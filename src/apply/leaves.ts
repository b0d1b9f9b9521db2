/**
 * Splits a value into the parts that server-side apply tracks separately: leaves of objects, and elements of sets and
 * map lists.
 */
import { type FieldPath, inOrder, isNameable, step } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import type { FieldLocation } from "./locate.ts";
import { childrenOf, nodesAt, otherHolders, placeOf } from "./ownership.ts";

/**
 * The paths of all parts that can have different owners. The path itself, unless the value is a non-empty granular
 * object or map list. None for a set: its elements can't conflict.
 */
export function leafPaths(path: FieldPath, value: JsonValue, shape: TargetShape): FieldPath[] {
  if (typeof value !== "object" || value === null) return [path];
  if (Array.isArray(value)) return elementLeaves(path, value, shape);
  if (shape.isAtomic(path)) return [path];
  const entries = Object.entries(value);
  if (entries.length === 0) return [path];
  return entries.flatMap(([key, child]) =>
    isNameable(key) ? leafPaths(path.with({ kind: "key", key }), child, shape) : [path],
  );
}

function elementLeaves(list: FieldPath, elements: readonly JsonValue[], shape: TargetShape): FieldPath[] {
  const type = shape.listAt(list);
  if (type.kind !== "map") return type.kind === "set" ? [] : [list];
  // The API server refuses elements without keys.
  return elements.filter(isObject).flatMap((element) => {
    const conditions = inOrder(type.keys.map((key) => ({ key, value: String(element[key]) })));
    const rest = Object.entries(element).filter(([key]) => !type.keys.includes(key));
    const path = list.with({ kind: "element", conditions });
    return rest.length === 0 ? [] : leafPaths(path, Object.fromEntries(rest), shape);
  });
}

export function otherHoldersOf(
  live: KubeObject,
  manager: string,
  path: FieldPath,
  value: JsonValue,
  shape: TargetShape,
): string[] {
  if (otherHolders(live, manager, path).length === 0) return [];
  const leaves = leafPaths(path, value, shape);
  return [...new Set(leaves.flatMap((leaf) => otherHolders(live, manager, leaf)))];
}

/** A part of an object that the binding owns, by indexes; and whether others own it too. */
interface Part {
  at: FieldPath;
  isShared: boolean;
}

/** The parts at a location that the binding owns. The whole location, if no other manager owns anything there. */
export function ownParts(live: KubeObject, manager: string, { held, at }: Pick<FieldLocation, "held" | "at">): Part[] {
  const { own, others } = nodesAt(live, manager, held);
  return split(own, others, at.get(live) as JsonValue, at);
}

/** `keys` are the fields that identify an element of a map list: all owners of the element own them. */
function split(
  own: readonly JsonObject[],
  others: readonly JsonObject[],
  value: JsonValue,
  at: FieldPath,
  keys: readonly string[] = [],
): Part[] {
  if (others.length === 0) return [{ at, isShared: false }];
  const names = (nodes: readonly JsonObject[]) =>
    [...new Set(nodes.flatMap((node) => Object.keys(node)))].filter((name) => name !== "." && !keys.includes(name));
  if (names(own).length === 0 || names(others).length === 0) return [{ at, isShared: true }];
  return names(own).flatMap((name) => {
    const place = placeOf(name, value);
    if (place === undefined) return [];
    const { segment, keys } = place;
    if (segment.kind === "key" && !isNameable(segment.key)) return [{ at, isShared: true }];
    const child = step(value, segment) as JsonValue;
    return split(childrenOf(own, [name]), childrenOf(others, [name]), child, at.with(segment), keys);
  });
}
