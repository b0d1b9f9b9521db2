/** Converts what a source or template gave to the type that the binding asks for, or that the target's schema takes. */
import type { Field } from "../api/binding.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { integerOf, isInt64, parseJson } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type Language, parseText } from "./document.ts";
import { textOf } from "./read.ts";
import { fits, typesOf } from "./schema-check.ts";

export type As = NonNullable<Field["as"]>;

const INTEGER = /^-?(?:0|[1-9]\d{0,18})$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

const isInt64Text = (text: string) => INTEGER.test(text) && isInt64(BigInt(text));

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
      return notNull(typeof given === "string" ? parseText(given, as, subject) : given, as, subject);
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
  expect(isInt64Text(text), text, "integer", subject);
  return integerOf(BigInt(text));
}

/** A whole number of 64 bits stays exact here too. */
function number(text: string, subject: string): JsonValue {
  if (isInt64Text(text)) return integerOf(BigInt(text));
  expect(NUMBER.test(text) && Number.isFinite(Number(text)), text, "number", subject);
  // Written as the API server will write it, which may be a long integer.
  return parseJson(String(Number(text)));
}

/** A document that says something. Throws Problem("InvalidValue"). */
export function notNull(parsed: JsonValue, as: Language, subject: string): JsonValue {
  return expect(parsed !== null, parsed, as, subject);
}

const isNumber = (value: JsonValue) => typeof value === "number" || typeof value === "bigint";

const isInteger = (value: JsonValue) =>
  typeof value === "bigint" ? isInt64(value) : typeof value === "number" && Number.isSafeInteger(value);

/** What the target's schema has at a path, or at a key below it; undefined where it has nothing to say. */
export type SchemaAt = (path: FieldPath, key?: string) => OpenApiSchema | undefined;

/**
 * For a text, the type that the place takes; for a number or boolean, text where the place takes no other. Undefined where
 * the value is right as it is, or can't be made right: the check against the schema says of the latter what to write.
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
  // Bytes that are no text match nothing here, and are refused where they become one.
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
