/** Reads the places that messages name, such as `bindings[s3].patches[2].transforms[0]`, as the steps that lead there. Pure. */
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";

/** A field of an object; or an element of a list, by its number or by its field `name`. */
export type Step = string | number;

const STEP = /([^.[\]]+)|\[([^\]]*)\]/g;
/** Where a message begins with a place, and what follows it. */
const PLACE = /^([\w-]+(?:\.[^\s.[\]:,]+|\[[^\]]*\])*)(?:: |, |$)/;
/** A patch of a set is named with the patch that uses the set. */
const PATCH_OF_SET = /^bindings\[[^\]]*\]\.patches\[\d+\]\.(?=patchSets\[)/;

export function stepsOf(place: string): Step[] {
  return [...place.replace(PATCH_OF_SET, "").matchAll(STEP)].map(([, key, inBrackets = ""]): Step => {
    if (key !== undefined) return key;
    if (/^\d+$/.test(inBrackets)) return Number(inBrackets);
    return inBrackets.replace(/^(["'])(.*)\1$/s, "$2");
  });
}

/** The steps to what a message is about: it begins with a place, and may go on with one below that. */
export function stepsIn(message: string): Step[] {
  const steps: Step[] = [];
  let rest = message;
  for (let found = PLACE.exec(rest); found !== null; found = PLACE.exec(rest)) {
    // A single word is the beginning of a sentence.
    if (steps.length > 0 && !/[.[]/.test(found[1] as string)) break;
    steps.push(...stepsOf(found[1] as string));
    rest = rest.slice(found[0].length);
    if (found[0].endsWith(", ")) break;
  }
  return steps;
}

/** The key or index in an object or list that a step means; undefined if there is none. */
export function placeOf(value: JsonValue | undefined, step: Step): string | number | undefined {
  if (Array.isArray(value)) {
    const index = typeof step === "number" ? step : value.findIndex((each) => isObject(each) && each["name"] === step);
    return index >= 0 && index < value.length ? index : undefined;
  }
  return isObject(value) && Object.hasOwn(value, step) ? String(step) : undefined;
}

/**
 * Takes out what the steps lead to, or the last part of the way that is there: an element of a list becomes null, so that all
 * others keep their place. Returns whether anything was taken out.
 */
export function takeOut(object: JsonObject, steps: readonly Step[]): boolean {
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
