/**
 * JSON text comes in, values go out, and back, with every integer exact: one that a double can't hold is a bigint, all
 * others are numbers. Nothing that comes out nests deeper than recursion can go.
 */
import type { JsonObject, JsonValue } from "./objects.ts";

/** An integer of 16 digits or more where a value may stand, or in a string that looks like it: parsed with more care. */
const LONG_INTEGER = /(?:^|[[:,\s])-?\d{16}/;
const INTEGER = /^-?\d+$/;
/** More digits than any integer has that Kubernetes takes; longer ones are not worth the time. */
const MAX_DIGITS = 40;

/**
 * How many levels of an object are read. Kinds and their schemas have up to some fifty, and managedFields five more than the object.
 * The API server stores 10,000, but what goes through an object by recursion, here and in Node, runs out of stack from 1,000 on.
 */
export const MAX_LEVELS = 256;
/** The same for a value that is written: below a path, and with what else is in the object, it has to be readable again. */
export const MAX_VALUE_LEVELS = 64;
const [QUOTE, BACKSLASH, LIST, LIST_END, OBJECT, OBJECT_END] = [34, 92, 91, 93, 123, 125];

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** With null for each object and list below MAX_LEVELS levels. Throws SyntaxError. */
export function parseJson(text: string): JsonValue {
  const shallow = withoutDeepLevels(text);
  if (!LONG_INTEGER.test(shallow)) return JSON.parse(shallow);
  return JSON.parse(shallow, exact as (key: string, value: unknown) => unknown);
}

/** Whether `parseJson` leaves anything out. */
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

/** Where the string ends that begins there. */
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

/** Whether two values are the same JSON. Numbers are compared as they are written, so `0` is `-0`, and digits count. */
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

/** Whether objects and lists nest more than so many levels in a value. */
export function nestsDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((each) => nestsDeeper(each, levels - 1));
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The one form of an integer: a number where that is exact. */
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
