/** Reads, writes and removes fields of objects by the paths of patches, by Crossplane's rules for conflicting values. */
import { elementsOf, isNameable, type Segment } from "../../apimachinery/field-path.ts";
import { isObject } from "../../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { type CompositeSegment, textOf } from "./path.ts";

/** The highest index that a patch writes; a list is filled with nulls up to it. */
export const MAX_WRITTEN_INDEX = 1024;

type Container = Record<string | number, JsonValue>;

/** The value, or undefined for a missing field or element. Throws Problem("InvalidValue") if the path can't exist in the object. */
export function getField(object: JsonObject, path: readonly Segment[]): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const [depth, segment] of path.entries()) {
    if (value === undefined) return undefined;
    value = step(value, segment, path.slice(0, depth));
  }
  return value;
}

/**
 * All existing paths that match a path with wildcards. Throws Problem("InvalidValue") if the value at a wildcard is neither a list nor an
 * object, or if the path can't exist in the object.
 */
export function expandWildcards(object: JsonObject, path: readonly CompositeSegment[]): Segment[][] {
  let found: { value: JsonValue; segments: Segment[] }[] = [{ value: object, segments: [] }];
  for (const [depth, segment] of path.entries()) {
    const above = path.slice(0, depth);
    found = found.flatMap(({ value, segments }) => {
      if (segment.kind === "wildcard")
        return membersOf(value, above).map(([member, each]) => ({ value: each, segments: [...segments, member] }));
      const next = step(value, segment, above);
      return next === undefined ? [] : [{ value: next, segments: [...segments, segment] }];
    });
  }
  return found.map(({ segments }) => segments);
}

/** Writes a field, and creates the objects and lists on the way. Throws Problem("InvalidValue"). */
export function setField(object: JsonObject, path: readonly Segment[], value: JsonValue): void {
  if (path.some((segment) => segment.kind === "index" && segment.index > MAX_WRITTEN_INDEX))
    throw new Problem("InvalidValue", `the index is above ${MAX_WRITTEN_INDEX}, the highest that is written`);
  let holder: JsonValue | undefined = object;
  for (const [depth, segment] of path.entries()) {
    const place = holder === undefined ? undefined : placeIn(holder, segment, path.slice(0, depth));
    if (place === undefined) throw new Problem("InvalidValue", `${textOf(path.slice(0, depth + 1))} does not exist`);
    const container = holder as Container;
    const next = path[depth + 1];
    if (next === undefined) container[place] = value;
    else holder = prepare(container, place, next);
  }
}

/** Removes a field or an element; later elements move up. A missing field is no problem. Throws Problem("InvalidValue"). */
export function removeField(object: JsonObject, path: readonly Segment[]): void {
  const last = path.at(-1) as Segment;
  const above = path.slice(0, -1);
  let holder: JsonValue = object;
  for (const [depth, segment] of above.entries()) {
    const place = placeIn(holder, segment, path.slice(0, depth));
    const next: JsonValue | undefined = place === undefined ? undefined : ownValue(holder as Container, place);
    if (next === undefined) return;
    holder = next;
  }
  const place = placeIn(holder, last, above);
  if (place === undefined) return;
  if (Array.isArray(holder)) holder.splice(place as number, 1);
  else delete (holder as Container)[place];
}

/** The value at a segment; undefined if it is missing. `above` is the path so far, for messages. */
function step(value: JsonValue, segment: Segment, above: readonly CompositeSegment[]): JsonValue | undefined {
  // A null field counts as missing, a null element as a mistake.
  if (value === null && segment.kind === "key") return undefined;
  const place = placeIn(value, segment, above);
  return place === undefined ? undefined : ownValue(value as Container, place);
}

/** The key or index of a segment in a value; undefined for a missing element. Throws Problem if the value can't have it. */
function placeIn(value: JsonValue, segment: Segment, above: readonly CompositeSegment[]): string | number | undefined {
  if (segment.kind === "key") {
    if (!isObject(value)) throw mismatch(above, "an object");
    return segment.key;
  }
  if (!Array.isArray(value)) throw mismatch(above, "a list");
  if (segment.kind === "index") return segment.index;
  const [place, ...others] = elementsOf(value, segment.conditions);
  if (others.length > 0) {
    const message = `${textOf([...above, segment])} matches ${others.length + 1} elements of the list; add conditions, as in [name=web,port=80]`;
    throw new Problem("InvalidValue", message);
  }
  return place;
}

/** The members that a wildcard matches. */
function membersOf(value: JsonValue, above: readonly CompositeSegment[]): [Segment, JsonValue][] {
  if (Array.isArray(value)) return value.map((each, index) => [{ kind: "index", index }, each]);
  if (!isObject(value)) throw mismatch(above, "a list or an object");
  return Object.entries(value).map(([key, each]) => {
    if (!isNameable(key)) throw new Problem("InvalidValue", `${textOf(above)} has a key that can't be part of a path`);
    return [{ kind: "key", key }, each];
  });
}

/** The existing value for the next segment. Creates a missing value, but no element that conditions identify. */
function prepare(container: Container, place: string | number, next: Segment): JsonValue | undefined {
  let there = ownValue(container, place);
  if (there === undefined || (there === null && Array.isArray(container))) {
    if (next.kind === "element") return undefined;
    there = next.kind === "key" ? {} : [];
    container[place] = there;
  }
  if (next.kind === "index" && Array.isArray(there)) while (there.length <= next.index) there.push(null);
  return there;
}

function ownValue(container: Container, place: string | number): JsonValue | undefined {
  return Object.hasOwn(container, place) ? container[place] : undefined;
}

function mismatch(above: readonly CompositeSegment[], what: string): Problem {
  return new Problem("InvalidValue", `${above.length === 0 ? "the object itself" : textOf(above)} is not ${what}`);
}
