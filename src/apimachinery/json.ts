/**
 * Parses and prints JSON with exact integers: an integer that a double can't hold exactly becomes a bigint. Parsed
 * values are never nested too deeply for recursion.
 */
import type { JsonObject, JsonValue } from "./objects.ts";

/** An integer of 16 digits or more, or text that looks like one: then the text needs the exact parser. */
const LONG_INTEGER = /(?:^|[[:,\s])-?\d{16}/;
const INTEGER = /^-?\d+$/;
/** No integer that Kubernetes accepts has more digits. Longer ones would only cost time. */
const MAX_DIGITS = 40;

/**
 * The limit of levels that Inlay reads. Kinds and their schemas have up to about fifty levels, and managedFields five
 * more than the object. The API server stores 10,000, but recursion here and in Node runs out of stack from 1,000 on.
 */
export const MAX_LEVELS = 256;
/** The limit of levels of a written value: the whole object with that value must stay readable. */
export const MAX_VALUE_LEVELS = 64;
const [QUOTE, BACKSLASH, LIST, LIST_END, OBJECT, OBJECT_END] = [34, 92, 91, 93, 123, 125];

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** Replaces each object and list below MAX_LEVELS levels with null. Throws SyntaxError. */
export function parseJson(text: string): JsonValue {
  const shallow = withoutDeepLevels(text);
  if (!LONG_INTEGER.test(shallow)) return JSON.parse(shallow);
  return JSON.parse(shallow, exact as (key: string, value: unknown) => unknown);
}

/** Whether `parseJson` omits anything. */
export function isTooDeep(text: string): boolean {
  return withoutDeepLevels(text) !== text;
}

function withoutDeepLevels(text: string): string {
  if (text.length <= 2 * MAX_LEVELS) return text;
  let [level, from, kept] = [0, 0, ""];
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (character === OBJECT || character === LIST) {
      if (++level === MAX_LEVELS + 1) kept += `${text.slice(from, at)}null`;
    } else if (character === OBJECT_END || character === LIST_END) {
      if (level-- === MAX_LEVELS + 1) from = at + 1;
    }
  }
  return from === 0 ? text : kept + text.slice(from);
}

/** The position of the end of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start; ; ) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let escapes = at;
    while (text.charCodeAt(escapes - 1) === BACKSLASH) escapes--;
    if ((at - escapes) % 2 === 0) return at;
  }
}

export function stringifyJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, (_, each) => (typeof each === "bigint" ? rawJSON(String(each)) : each), indent);
}

/** Whether two values are the same JSON. Numbers are compared by their text, so `0` equals `-0`. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (isNumeric(a) && isNumeric(b)) return String(a) === String(b);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]))
  );
}

/** Whether objects and lists in a value are nested more than `levels` levels deep. */
export function nestsDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => nestsDeeper(each, levels - 1));
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A number if it is exact, else the bigint. */
export function integerOf(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

export function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

const isNumeric = (value: unknown) => typeof value === "number" || typeof value === "bigint";

function exact(_: string, value: unknown, context: { source?: string }): unknown {
  const { source } = context;
  if (typeof value !== "number" || source === undefined || Number.isSafeInteger(value)) return value;
  if (!INTEGER.test(source)) return value;
  return source.length <= MAX_DIGITS ? BigInt(source) : Number.NaN;
}
