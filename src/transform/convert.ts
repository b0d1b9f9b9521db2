/** What a source or template gave comes in, with the type that the binding asks for; a value of that type goes out. */
import type { Field } from "../api/binding.ts";
import { integerOf, isInt64, parseJson } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type Language, parseText } from "./document.ts";
import { textOf } from "./read.ts";

export type As = NonNullable<Field["as"]>;

const INTEGER = /^-?(?:0|[1-9]\d{0,18})$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Bytes are those of a key; without `as` they are text, and everything else is what it is. Throws Problem("InvalidValue")
 * and Problem("NotUtf8"), which call the value by `subject` and quote nothing of it.
 */
export function convert(value: Uint8Array | JsonValue, as: As | undefined, subject: string): JsonValue {
  if (as === "bytes") return toBase64(value, subject);
  const given = value instanceof Uint8Array ? textOf(value, subject) : value;
  switch (as) {
    case undefined:
      return given;
    case "string":
      return scalarText(given, as, subject);
    case "integer":
      return typeof given === "string" ? integer(given, subject) : expect(isInteger(given), given, as, subject);
    case "number":
      return typeof given === "string" ? number(given, subject) : expect(isNumber(given), given, as, subject);
    case "boolean":
      if (given === "true" || given === "false") return given === "true";
      return expect(typeof given === "boolean", given, as, subject);
    default:
      return document(given, as, subject);
  }
}

const rules: Record<As, string> = {
  string: "a text, a number, or true or false",
  integer: "a whole number of 64 bits, such as 5432 or -7; spaces and line breaks count",
  number: "a number as JSON writes it, such as 0.5 or -2e9, that a double can hold; spaces and line breaks count",
  boolean: "true or false, in small letters; spaces and line breaks count",
  bytes: "bytes or a text",
  json: "JSON, and not null",
  yaml: "YAML, and not null or empty",
};

function expect(isRight: boolean, value: JsonValue, as: As, subject: string): JsonValue {
  if (!isRight) throw new Problem("InvalidValue", `${subject} is not ${rules[as]}`);
  return value;
}

function toBase64(value: Uint8Array | JsonValue, subject: string): string {
  const bytes = value instanceof Uint8Array ? value : Buffer.from(scalarText(value, "bytes", subject));
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

function scalarText(value: JsonValue, as: As, subject: string): string {
  expect(value !== null && typeof value !== "object", value, as, subject);
  return String(value);
}

function integer(text: string, subject: string): JsonValue {
  expect(INTEGER.test(text) && isInt64(BigInt(text)), text, "integer", subject);
  return integerOf(BigInt(text));
}

/** A whole number of 64 bits stays exact here too. */
function number(text: string, subject: string): JsonValue {
  if (INTEGER.test(text) && isInt64(BigInt(text))) return integerOf(BigInt(text));
  expect(NUMBER.test(text) && Number.isFinite(Number(text)), text, "number", subject);
  // Written as the API server will write it, which may be a long integer.
  return parseJson(String(Number(text)));
}

function document(given: JsonValue, as: Language, subject: string): JsonValue {
  return notNull(typeof given === "string" ? parseText(given, as, subject) : given, as, subject);
}

/** A document that says something. Throws Problem("InvalidValue"). */
export function notNull(parsed: JsonValue, as: Language, subject: string): JsonValue {
  return expect(parsed !== null, parsed, as, subject);
}

const isNumber = (value: JsonValue) => typeof value === "number" || typeof value === "bigint";

const isInteger = (value: JsonValue) =>
  typeof value === "bigint" ? isInt64(value) : typeof value === "number" && Number.isSafeInteger(value);
