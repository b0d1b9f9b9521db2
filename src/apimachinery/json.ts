/**
 * Parses and prints JSON with exact integers: an integer that a double can't hold exactly becomes a bigint. Parsed
 * values are never nested too deeply for recursion.
 */
import { randomUUID } from "node:crypto";
import type { JsonObject, JsonValue } from "./objects.ts";

/** An integer of 16 digits or more, or text that looks like one. The first test is faster. */
const DIGITS = /\d{16}/;
const LONG_INTEGER = /(?:^|[[:,\s])-?\d{16}/;
const MIN_DIGITS = 16;
const INTEGER = /^-?[1-9]\d{15,}$/;
/** Before the text of a long integer in a string. Random, so that no other string begins so. */
const MARK = `${randomUUID()}:`;
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
const [PLUS, MINUS, NINE, E, LOWER_E] = [43, 45, 57, 69, 101];

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** Replaces each object and list below MAX_LEVELS levels with null. Throws SyntaxError. */
export function parseJson(text: string): JsonValue {
  return parseShallow(withoutDeepLevels(text));
}

/** The same for text without deeper levels. */
export function parseShallow(text: string): JsonValue {
  if (!DIGITS.test(text) || !LONG_INTEGER.test(text)) return JSON.parse(text);
  return withIntegers(JSON.parse(withMarks(text)));
}

/** Whether `parseJson` replaces anything. */
export function isTooDeep(text: string): boolean {
  return withoutDeepLevels(text) !== text;
}

/** The text with null for each object and list below MAX_LEVELS levels. */
export function withoutDeepLevels(text: string): string {
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

/** Most strings are shorter. A search has a cost of its own. */
const SHORT = 48;

/** The position of the closing quote of the string that begins at `start`; the length of the text if there is none. */
export function endOfString(text: string, start: number): number {
  const near = Math.min(text.length, start + SHORT);
  for (let at = start + 1; at < near; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) return at;
    if (character === BACKSLASH) at++;
  }
  // Not from the middle of an escape.
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

/**
 * The text with each long integer as a string after the mark. A reviver of `JSON.parse` would be called for every value, and takes a
 * hundred times as long.
 */
function withMarks(text: string): string {
  let [from, marked] = [0, ""];
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (isOfNumber(character)) {
      const start = at;
      while (isOfNumber(text.charCodeAt(at + 1))) at++;
      if (at + 1 - start < MIN_DIGITS) continue;
      const number = text.slice(start, at + 1);
      if (!INTEGER.test(number)) continue;
      marked += `${text.slice(from, start)}"${MARK}${number}"`;
      from = at + 1;
    }
  }
  return marked + text.slice(from);
}

/** Whether the character may be part of a number. Outside of strings, other values have at most one of these in a row. */
const isOfNumber = (character: number) =>
  (character >= MINUS && character <= NINE) || character === PLUS || character === E || character === LOWER_E;

/** The value with an exact number in place of each marked string. */
function withIntegers(value: JsonValue): JsonValue {
  if (typeof value === "string") return value.startsWith(MARK) ? exact(value.slice(MARK.length)) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) value[at] = withIntegers(value[at] as JsonValue);
    return value;
  }
  for (const key in value) {
    const each = value[key] as JsonValue;
    const exactly = withIntegers(each);
    if (exactly !== each) set(value, key, exactly);
  }
  return value;
}

/** The same text for the same JSON, whatever the order of its keys. */
export const canonicalJson = (value: unknown): string => stringifyJson(sorted(value));

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}

/** Sets an own property, also if its name is `__proto__`. */
export function set(object: JsonObject, key: string, value: JsonValue): void {
  if (key === "__proto__")
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  else object[key] = value;
}

function exact(digits: string): JsonValue {
  const number = Number(digits);
  if (Number.isSafeInteger(number)) return number;
  return (digits.length <= MAX_DIGITS ? BigInt(digits) : Number.NaN) as JsonValue;
}
