/** Locates a binding's path in an object and in its managedFields. Pure. */
import {
  type ElementCondition,
  elementsOf,
  FieldPath,
  inOrder,
  notUnique,
  type Segment,
  step,
} from "../apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { elementAt } from "../transform/path-advice.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { isUnique } from "./duplicates.ts";

export interface FieldLocation {
  /**
   * The path as in managedFields, with elements of map lists by their keys. Ends at a list, an object, or elements with
   * equal keys that have one owner as a whole.
   */
  readonly held: FieldPath;
  /** The keys of each map list element on the path, in order. */
  readonly keys: readonly JsonObject[];
  /** Whether the path continues in there. Server-side apply can't write such a path. */
  readonly within: boolean;
  /**
   * The position in the path of the first element of a map list whose keys another element has too: these elements have
   * one owner as a whole. Undefined if there is none.
   */
  readonly duplicate: number | undefined;
  /** The path with indexes only, as far as the elements exist. */
  readonly at: FieldPath;
  /** Why an element of the path does not exist; undefined if all exist. */
  readonly missing: Problem | undefined;
  /** Why an element can't be created from the conditions in the path. */
  readonly unidentified: Problem | undefined;
}

/** Throws Problem: ElementNotUnique; TypeMismatch if the path and the object disagree about what is a list. */
export function locate(path: FieldPath, shape: TargetShape, live: unknown): FieldLocation {
  let node: unknown = live;
  let within = false;
  let duplicate: number | undefined;
  let missing: Problem | undefined;
  let unidentified: Problem | undefined;
  const [at, held, keys]: [Segment[], Segment[], JsonObject[]] = [[], [], []];
  for (const [position, segment] of path.segments.entries()) {
    const here = path.upTo(position);
    assertFits(node, segment, here, path);
    if (segment.kind === "key") {
      within ||= shape.isAtomic(here);
      if (missing === undefined) at.push(segment);
      if (!within) held.push(segment);
      node = step(node, segment);
      continue;
    }
    const list = Array.isArray(node) ? node : [];
    const place = placeIn(list, segment, path.upTo(position + 1), live);
    if (place === undefined) missing ??= notFound(path, here, segment, list);
    if (place === undefined && segment.kind === "index") unidentified ??= missing;
    if (place !== undefined && missing === undefined) at.push({ kind: "index", index: place });
    node = place === undefined ? undefined : list[place];
    const type = shape.listAt(here);
    within ||= type.kind !== "map" || isKey(path.segments.slice(position + 1), type.keys);
    if (within || type.kind !== "map") continue;
    const element = node === undefined ? newElement(shape, here, segment, type.keys) : (node as JsonObject);
    if (element instanceof Problem) {
      unidentified ??= element;
      break;
    }
    const own = Object.fromEntries(type.keys.map((key) => [key, element[key] as JsonValue]));
    keys.push(own);
    const conditions = Object.entries(own).map(([key, value]) => ({ key, value: String(value) }));
    held.push({ kind: "element", conditions: inOrder(conditions) });
    if (node === undefined || isUnique(node, list, type.keys, here, shape)) continue;
    within = true;
    duplicate = position;
  }
  return { held: new FieldPath(held), keys, within, duplicate, at: new FieldPath(at), missing, unidentified };
}

/** Undefined if the path does not fit the object, or several elements match. */
export function locateIn(path: FieldPath, shape: TargetShape, live: unknown): FieldLocation | undefined {
  const place = attemptSync(() => locate(path, shape, live));
  return place instanceof Problem ? undefined : place;
}

/**
 * The API server identifies elements only by keys. A write by further conditions would change the element with these
 * keys.
 */
function newElement(
  shape: TargetShape,
  list: FieldPath,
  segment: Segment,
  keys: readonly string[],
): JsonObject | Problem {
  const conditions = conditionsOf(segment);
  const more = conditions.filter(({ key }) => !keys.includes(key));
  const element = attemptSync(() => shape.elementOf(list, conditions));
  return more.length === 0 || element instanceof Problem ? element : tooMuch(list.with(segment), keys, more);
}

function tooMuch(element: FieldPath, keys: readonly string[], more: readonly ElementCondition[]): Problem {
  const names = more.map(({ key }) => key).join(" and ");
  const message = `${element} does not exist and can't be appended: only ${keys.join(" and ")} identifies an element of this list; remove ${names} from the path, or add the element to the target`;
  return new Problem("InvalidPath", message);
}

/** The index of the element that a segment names in a list of the object. Throws Problem("ElementNotUnique"). */
export function placeIn(
  list: readonly unknown[],
  segment: Segment,
  path: FieldPath,
  object: unknown,
): number | undefined {
  if (segment.kind === "index") return segment.index < list.length ? segment.index : undefined;
  const found = elementsOf(list, conditionsOf(segment), object);
  if (found.length > 1) throw notUnique(path, found);
  return found[0];
}

export const conditionsOf = (segment: Segment | undefined) => (segment?.kind === "element" ? segment.conditions : []);

/** Whether the path ends in a key of a map list. A write to a key replaces the whole list. */
function isKey(rest: readonly Segment[], keys: readonly string[]): boolean {
  const [leaf] = rest;
  return rest.length === 1 && leaf?.kind === "key" && keys.includes(leaf.key);
}

const words = (value: unknown) =>
  Array.isArray(value) ? "a list" : value !== null && typeof value === "object" ? "an object" : "a single value";

/** Where the schema is open, the value in the object may have another type than the path expects. */
function assertFits(node: unknown, segment: Segment, here: FieldPath, path: FieldPath): void {
  if (node === undefined || node === null) return;
  if (segment.kind === "key" && Array.isArray(node)) {
    const element = segment.key === "name" ? elementAt(here) : `${here}[name=...]`;
    const what = `${here} is a list in the target; name the element, as in ${element}`;
    throw new Problem("TypeMismatch", { at: [String(path)], what });
  }
  if (segment.kind === "key" ? typeof node === "object" : Array.isArray(node)) return;
  const wanted = segment.kind === "key" ? "an object" : "a list";
  const what = `${here} is ${words(node)} in the target, but the path needs ${wanted}`;
  throw new Problem("TypeMismatch", { at: [String(path)], what });
}

function notFound(path: FieldPath, list: FieldPath, segment: Segment, elements: readonly unknown[]): Problem {
  const { length } = elements;
  const has =
    length === 0
      ? "is empty"
      : length === 1
        ? "has 1 element, with the index 0"
        : `has ${length} elements, with the indexes 0 to ${length - 1}`;
  const named = list.with(segment);
  const why =
    segment.kind === "index"
      ? `there is no ${named}: the list ${has}; ${length === 0 ? "" : "correct the index, "}name the element by a field, as in ${list}[name=...], or add the element to the target. onMissingElement: Append adds only an element that the path names by its fields`
      : `there is no element ${named}; add it to the target, or set onMissingElement: Append`;
  return new Problem("ElementNotFound", String(named) === String(path) ? why : `${path}: ${why}`);
}

/** Sorts locations in an object: later elements of a list come later, and new elements last. */
export function byPlace(a: FieldPath, b: FieldPath): number {
  for (const [n, segment] of a.segments.entries()) {
    const other = b.segments[n];
    if (segment.kind === "index" && other?.kind === "index") {
      if (segment.index !== other.index) return segment.index - other.index;
    } else if (segment.kind === "key" && other?.kind === "key" && segment.key !== other.key) {
      return segment.key < other.key ? -1 : 1;
    }
  }
  return b.segments.length - a.segments.length;
}
