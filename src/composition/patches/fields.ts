/** Reads, writes and removes fields of objects by the paths of patches, with the rules of Crossplane for what is in the way. */
import { elementsOf, isNameable, type Segment } from "../../apimachinery/field-path.ts";
import { isObject } from "../../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { type CompositeSegment, textOf } from "./path.ts";

/** The highest index that a patch writes; a list is filled with nulls up to it. */
export const MAX_WRITTEN_INDEX = 1024;

type Container = Record<string | number, JsonValue>;

/** The value, or undefined where a field or an element is missing. Throws Problem("InvalidValue") where a path can't lead. */
export function getField(object: JsonObject, path: readonly Segment[]): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const [depth, segment] of path.entries()) {
    if (value === undefined) return undefined;
    value = step(value, segment, path.slice(0, depth));
  }
  return value;
}

/**
 * Every path that a path with wildcards means, of those that are there as a whole. Throws Problem("InvalidValue") where a
 * wildcard is asked of something that is no list and no object, or a path can't lead.
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

/** Writes a field, and makes the objects and lists on the way. Throws Problem("InvalidValue"). */
export function setField(object: JsonObject, path: readonly Segment[], value: JsonValue): void {
  if (path.some((segment) => segment.kind === "index" && segment.index > MAX_WRITTEN_INDEX))
    throw new Problem("InvalidValue", `an index that is written is at most ${MAX_WRITTEN_INDEX}`);
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

/** Takes a field or an element out; the elements behind it move up. What is not there is no problem. Throws Problem("InvalidValue"). */
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

/** What one segment leads to; undefined for what is missing. `above` is the path so far, for messages. */
function step(value: JsonValue, segment: Segment, above: readonly CompositeSegment[]): JsonValue | undefined {
  // A field of null counts as missing, an element of null as a mistake.
  if (value === null && segment.kind === "key") return undefined;
  const place = placeIn(value, segment, above);
  return place === undefined ? undefined : ownValue(value as Container, place);
}

/** The key or index of a segment, if a value can have it; undefined for an element that is missing. */
function placeIn(value: JsonValue, segment: Segment, above: readonly CompositeSegment[]): string | number | undefined {
  if (segment.kind === "key") {
    if (!isObject(value)) throw mismatch(above, "an object");
    return segment.key;
  }
  if (!Array.isArray(value)) throw mismatch(above, "a list");
  if (segment.kind === "index") return segment.index;
  const [place, ...others] = elementsOf(value, segment.conditions);
  if (others.length > 0) {
    const message = `${textOf([...above, segment])} fits ${others.length + 1} elements of the list; add conditions, as in [name=web,port=80]`;
    throw new Problem("InvalidValue", message);
  }
  return place;
}

/** What a wildcard means. */
function membersOf(value: JsonValue, above: readonly CompositeSegment[]): [Segment, JsonValue][] {
  if (Array.isArray(value)) return value.map((each, index) => [{ kind: "index", index }, each]);
  if (!isObject(value)) throw mismatch(above, "a list or an object");
  return Object.entries(value).map(([key, each]) => {
    if (!isNameable(key)) throw new Problem("InvalidValue", `${textOf(above)} has a key that can't be part of a path`);
    return [{ kind: "key", key }, each];
  });
}

/** What is at a place for the next segment to write into. What is missing is made, but no element that conditions name. */
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
