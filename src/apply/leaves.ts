/**
 * A path and a value that stands, or is to stand, there come in; what server-side apply tells apart in it goes out: the
 * leaves of an object. Others may hold the leaves beside them.
 */
import { FieldPath } from "../model/field-path.ts";
import type { JsonValue, KubeObject } from "../model/kube-object.ts";
import { Problem } from "../model/problem.ts";
import { heldPart, otherHolders } from "./ownership.ts";

/** The path itself for anything but an object with something in it. Lists are leaves. */
export function leafPaths(path: FieldPath, value: JsonValue): FieldPath[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [path];
  const below = Object.entries(value).map(([key, child]) => ({ path: childOf(path, key), child }));
  if (below.length === 0) return [path];
  return below.flatMap((each) => (each.path === undefined ? [path] : leafPaths(each.path, each.child)));
}

/** Who but `manager` holds something of that value, or a parent of it as a whole. */
export function otherHoldersOf(live: KubeObject, manager: string, path: FieldPath, value: JsonValue): string[] {
  if (otherHolders(live, manager, path).length === 0) return [];
  return [...new Set(leafPaths(path, value).flatMap((leaf) => otherHolders(live, manager, leaf)))];
}

/** The path, or its leaves that are ours where others hold something there too. */
export function ownParts(live: KubeObject, manager: string, path: FieldPath): FieldPath[] {
  const value = otherHolders(live, manager, path).length === 0 ? undefined : heldPart(live, manager, path);
  return value === undefined ? [path] : leafPaths(path, value);
}

/** Undefined for a key that no path may name. */
function childOf(path: FieldPath, key: string): FieldPath | undefined {
  try {
    return new FieldPath([...path.segments, { kind: "key", key }]);
  } catch (error) {
    if (error instanceof Problem) return undefined;
    throw error;
  }
}
