/** Converts a value of a source or template to the type that the binding sets, or that the target's schema needs. */
import type { Field } from "../api/binding.ts";
import { integerOf, isInt64, parseJson } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type Language, type OnDifference, parseText } from "./document.ts";
import { textOf } from "./read.ts";
import { fits, typesOf } from "./schema-check.ts";

export type As = NonNullable<Field["as"]>;

const INTEGER = /^-?(?:0|[1-9]\d{0,18})$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

const isInt64Text = (text: string) => INTEGER.test(text) && isInt64(BigInt(text));

/**
 * Converts bytes of a key, or any JSON value. Without `as`, bytes become text, and other values stay. Throws
 * Problem("InvalidValue") and Problem("NotUtf8"), which name the value by `subject` and quote nothing of it.
 */
export function convert(
  value: Uint8Array | JsonValue,
  as: As | undefined,
  subject: string,
  differs?: OnDifference,
): JsonValue {
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
      return notNull(typeof given === "string" ? parseText(given, as, subject, differs) : given, as, subject);
  }
}

const rules: Record<As, string> = {
  string: "a string, a number, or true or false",
  integer: "a whole number of 64 bits, such as 5432 or -7, without spaces and line breaks",
  number: "a number in JSON's notation, such as 0.5 or -2e9, that fits into a double, without spaces and line breaks",
  boolean: "true or false, in lower case, without spaces and line breaks",
  bytes: "bytes or a string",
  json: "JSON other than null",
  yaml: "YAML other than null or an empty document",
};

function expect(isRight: boolean, value: JsonValue, as: As, subject: string): JsonValue {
  if (!isRight) throw new Problem("InvalidValue", `${subject} is not ${rules[as]}; correct it, or name another key`);
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
  expect(isInt64Text(text), text, "integer", subject);
  return integerOf(BigInt(text));
}

/** A whole number of 64 bits stays exact. */
function number(text: string, subject: string): JsonValue {
  if (isInt64Text(text)) return integerOf(BigInt(text));
  expect(NUMBER.test(text) && Number.isFinite(Number(text)), text, "number", subject);
  // Printed and parsed again, because the API server may print it as a long integer.
  return parseJson(String(Number(text)));
}

/** A document other than null. Throws Problem("InvalidValue"). */
export function notNull(parsed: JsonValue, as: Language, subject: string): JsonValue {
  return expect(parsed !== null, parsed, as, subject);
}

const isNumber = (value: JsonValue) => typeof value === "number" || typeof value === "bigint";

const isInteger = (value: JsonValue) =>
  typeof value === "bigint" ? isInt64(value) : typeof value === "number" && Number.isSafeInteger(value);

/**
 * The type for a value without `as`: the type of the field for a text, and text for a number or boolean in a field that
 * only accepts text. Undefined if the value is right or can't be converted. The check against the schema explains the
 * latter.
 */
export function inferAs(schema: OpenApiSchema | undefined, value: Uint8Array | JsonValue): As | undefined {
  if (schema === undefined) return undefined;
  const types = typesOf(schema);
  const takesText = types.includes("string");
  const isBytes = takesText && schema.format === "byte";
  if (typeof value !== "string" && !(value instanceof Uint8Array)) {
    const isMisfit = value !== null && typeof value !== "object" && takesText && !fits(schema, value);
    return isMisfit ? (isBytes ? "bytes" : "string") : undefined;
  }
  // Bytes that are not text match nothing here. The conversion to text refuses them.
  const text = () => (typeof value === "string" ? value : Buffer.from(value).toString());
  if (isIntOrString(schema)) return isInt64Text(text()) ? "integer" : undefined;
  if (isBytes) return "bytes";
  if (takesText) return undefined;
  const isBoolean = types.includes("boolean");
  const number = types.includes("number") ? "number" : types.includes("integer") ? "integer" : undefined;
  return isBoolean && (number === undefined || /^(?:true|false)$/.test(text())) ? "boolean" : number;
}

const isIntOrString = (schema: OpenApiSchema) =>
  schema["x-kubernetes-int-or-string"] === true || schema.format === "int-or-string";
