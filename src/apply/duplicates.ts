/**
 * Finds elements of a map list with equal keys. The API server keeps them, treats them as one value with one owner, and
 * replaces all of them by one element when their keys are applied. Pure.
 */
import { type FieldPath, isNameable } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { add, textOf } from "./elements.ts";

type Shape = Pick<TargetShape, "listAt" | "isAtomic" | "defaultAt">;

/** Returns the text of the keys of an element of the list. A missing key has its default. */
function keysTextIn(list: FieldPath, keys: readonly string[], shape: Shape): (element: unknown) => string {
  const defaults = keys.map((key) => shape.defaultAt(list.with({ kind: "index", index: 0 }, { kind: "key", key })));
  return (element) => {
    const given = isObject(element) ? element : {};
    return keys.map((key, at) => textOf(Object.hasOwn(given, key) ? given[key] : defaults[at])).join();
  };
}

interface Counts {
  shape: Shape;
  textIn: (element: unknown) => string;
  /** The number of elements with these keys. */
  counts: Map<string, number>;
}

/** Per list: counting for each field of a binding takes seconds for thousands of elements. */
const countsOf = new WeakMap<readonly unknown[], Counts>();

/** Whether no other element of the list has the keys of the element. */
export function isUnique(
  element: unknown,
  list: readonly unknown[],
  keys: readonly string[],
  path: FieldPath,
  shape: Shape,
): boolean {
  let known = countsOf.get(list);
  if (known?.shape !== shape) {
    const textIn = keysTextIn(path, keys, shape);
    const counts = new Map<string, number>();
    for (const text of list.map(textIn)) counts.set(text, (counts.get(text) ?? 0) + 1);
    known = { shape, textIn, counts };
    countsOf.set(list, known);
  }
  return known.counts.get(known.textIn(element)) === 1;
}

/**
 * Throws Problem unless the value can be applied at the path: InvalidValue if it has elements with equal keys itself;
 * ElementNotUnique if the object has several elements where the value has one. `live` is what the object has there.
 */
export function assertUnique(path: FieldPath, value: JsonValue, live: unknown, shape: Shape): void {
  if (Array.isArray(value)) assertUniqueElements(path, value, Array.isArray(live) ? live : [], shape);
  if (!isObject(value) || shape.isAtomic(path)) return;
  for (const [key, child] of Object.entries(value)) {
    if (typeof child !== "object" || child === null || !isNameable(key)) continue;
    const there = isObject(live) && Object.hasOwn(live, key) ? (live as JsonObject)[key] : undefined;
    assertUnique(path.with({ kind: "key", key }), child, there, shape);
  }
}

function assertUniqueElements(
  list: FieldPath,
  elements: readonly JsonValue[],
  live: readonly JsonValue[],
  shape: Shape,
): void {
  const type = shape.listAt(list);
  if (type.kind !== "map") return;
  const { keys } = type;
  const textIn = keysTextIn(list, keys, shape);
  const names = keys.join(" and ");
  const own = placesBy(elements, textIn);
  const there = placesBy(live, textIn);
  for (const [index, element] of elements.entries()) {
    const text = textIn(element);
    const [first, second] = own.get(text) ?? [];
    if (second !== undefined) {
      const message = `${list}: the elements [${first}] and [${second}] to write have the same ${names}, which identifies an element of this list; remove one of them`;
      throw new Problem("InvalidValue", message);
    }
    const [found, other] = there.get(text) ?? [];
    if (found !== undefined && other !== undefined) {
      const message = `${list}: the elements [${found}] and [${other}] of the target have the same ${names}, so the API server would replace both by one; nothing was written. Remove one of them from the target, or write only a field of one of them, by its index as in ${list}[${found}]`;
      throw new Problem("ElementNotUnique", message);
    }
    assertUnique(list.with({ kind: "index", index }), element, found === undefined ? undefined : live[found], shape);
  }
}

function placesBy(elements: readonly JsonValue[], textIn: (element: JsonValue) => string): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const [index, element] of elements.entries()) add(places, textIn(element), index);
  return places;
}
