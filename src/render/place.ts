/** Parses places, such as `bindings[s3].patches[2].transforms[0]`, to the steps of a path. Pure. */
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";

/** A key; or an element of a list, by its index or its field `name`. */
export type Step = string | number;

const STEP = /([^.[\]]+)|\[([^\]]*)\]/g;
/** A patch of a set is listed below the patch that uses the set. */
const PATCH_OF_SET = /^bindings\[[^\]]*\]\.patches\[\d+\]\.(?=patchSets\[)/;

/** The steps to a place, which may consist of several parts, each below the one before it. */
export const stepsOf = (places: readonly string[]): Step[] =>
  places.flatMap((place) =>
    [...place.replace(PATCH_OF_SET, "").matchAll(STEP)].map(([, key, inBrackets = ""]): Step => {
      if (key !== undefined) return key;
      if (/^\d+$/.test(inBrackets)) return Number(inBrackets);
      return inBrackets.replace(/^(["'])(.*)\1$/s, "$2");
    }),
  );

/** The key or index of a step in an object or list; undefined if there is none. */
export function placeOf(value: JsonValue | undefined, step: Step): string | number | undefined {
  if (Array.isArray(value)) {
    const index = typeof step === "number" ? step : value.findIndex((each) => isObject(each) && each["name"] === step);
    return index >= 0 && index < value.length ? index : undefined;
  }
  return isObject(value) && Object.hasOwn(value, step) ? String(step) : undefined;
}

/**
 * Removes the value that the steps lead to, or the deepest existing part of the path. An element of a list becomes null, so that the
 * indices of the others don't change. Returns whether anything was removed.
 */
export function removeAt(object: JsonObject, steps: readonly Step[]): boolean {
  let [holder, place]: [JsonObject | JsonValue[] | undefined, string | number | undefined] = [undefined, undefined];
  let value: JsonValue | undefined = object;
  for (const step of steps) {
    const next = placeOf(value, step);
    if (next === undefined) break;
    [holder, place] = [value as JsonObject, next];
    value = (holder as JsonObject)[next];
  }
  if (holder === undefined || place === undefined) return false;
  if (Array.isArray(holder)) {
    if (holder[place as number] === null) return false;
    holder[place as number] = null;
  } else delete holder[place];
  return true;
}
