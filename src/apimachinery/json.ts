/**
 * JSON text comes in, values go out, and back, with every integer exact: one that a double can't hold is a bigint, all
 * others are numbers.
 */
import type { JsonObject, JsonValue } from "./objects.ts";

/** An integer of 16 digits or more where a value may stand, or in a string that looks like it: parsed with more care. */
const LONG_INTEGER = /(?:^|[[:,\s])-?\d{16}/;
const INTEGER = /^-?\d+$/;
/** More digits than any integer has that Kubernetes takes; longer ones are not worth the time. */
const MAX_DIGITS = 40;

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** Throws SyntaxError, and RangeError for text that nests too deeply. */
export function parseJson(text: string): JsonValue {
  if (!LONG_INTEGER.test(text)) return JSON.parse(text);
  return JSON.parse(text, exact as (key: string, value: unknown) => unknown);
}

export function stringifyJson(value: unknown): string {
  return JSON.stringify(value, (_, each) => (typeof each === "bigint" ? rawJSON(String(each)) : each));
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
