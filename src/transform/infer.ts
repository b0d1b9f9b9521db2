/** A target's schema and a value for a place in it come in; as what the value is written, where the binding is silent, goes out. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { isInt64 } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import type { As } from "./convert.ts";
import { fits, typesOf } from "./schema-check.ts";

/** What the target's schema has at a path, or at a key below it; undefined where it has nothing to say. */
export type SchemaAt = (path: FieldPath, key?: string) => OpenApiSchema | undefined;

const DIGITS = /^-?(?:0|[1-9]\d{0,18})$/;

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
  if (isIntOrString(schema)) return isInteger(textOf(value)) ? "integer" : undefined;
  if (isBytes) return "bytes";
  if (takesText) return undefined;
  const isBoolean = types.includes("boolean");
  const number = types.includes("number") ? "number" : types.includes("integer") ? "integer" : undefined;
  return isBoolean && (number === undefined || /^(?:true|false)$/.test(textOf(value))) ? "boolean" : number;
}

const isIntOrString = (schema: OpenApiSchema) =>
  schema["x-kubernetes-int-or-string"] === true || schema.format === "int-or-string";

const isInteger = (text: string) => DIGITS.test(text) && isInt64(BigInt(text));

/** Bytes that are no text match nothing here, and are refused where they become one. */
const textOf = (value: string | Uint8Array) => (typeof value === "string" ? value : Buffer.from(value).toString());
