/** Reads a value of a source, still sealed. Pure. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { MAX_VALUE_LEVELS, nestsDeeper } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { MissingValue, Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import type { LiveSource } from "./live-source.ts";

export type DataSource = Extract<LiveSource, { kind: "data" }>;
export type ObjectSource = Extract<LiveSource, { kind: "object" }>;
export type PresentSource = DataSource | ObjectSource;

/** The source, if there is one. Throws MissingValue("SourceNotFound"), or ("NotGranted"). */
export function present(source: LiveSource): PresentSource {
  if (source.kind === "absent") throw source.problem;
  return source;
}

/** The bytes of one key. Throws MissingValue("KeyNotFound"). */
export function readBytes(source: DataSource, key: string): SecretValue<Uint8Array> {
  const bytes = source.data.get(key);
  if (bytes === undefined) throw notFound(source, `key ${key}`);
  return bytes;
}

const texts = new WeakMap<SecretValue<Uint8Array>, SecretValue<string>>();

/** The text of one key, to the letter, made once for all that need it. Throws MissingValue("KeyNotFound") and Problem("NotUtf8"). */
export function readText(source: DataSource, key: string): SecretValue<string> {
  const bytes = readBytes(source, key);
  const text = texts.get(bytes) ?? bytes.map((each) => textOf(each, keyOf(source, key)));
  texts.set(bytes, text);
  return text;
}

/** The value at a path, of any JSON type. Throws MissingValue("KeyNotFound") if absent or null, and Problem("InvalidValue"). */
export function readField(source: ObjectSource, path: FieldPath): SecretValue<JsonValue> {
  return source.object.map((object) => {
    const value = there(path.get(object), source, `field ${path}`);
    if (!nestsDeeper(value, MAX_VALUE_LEVELS)) return value;
    throw new Problem(
      "InvalidValue",
      `field ${path} of ${source.description} nests more than ${MAX_VALUE_LEVELS} deep`,
    );
  });
}

/** The value itself, if there is one. Throws MissingValue("KeyNotFound") for undefined and null. */
export function there(value: unknown, source: PresentSource, where: string): JsonValue {
  if (value === undefined || value === null) throw notFound(source, where);
  return value as JsonValue;
}

/** The text of bytes. Throws Problem("NotUtf8") that names `subject`. */
export function textOf(bytes: Uint8Array, subject: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const message = `${subject} is not UTF-8 text; only fields of bytes take it as it is, and any text field by {{base64 source.key}}`;
    throw new Problem("NotUtf8", message);
  }
}

/** `key tls.crt of Secret registry/bucket`, for messages. */
export const keyOf = (source: LiveSource, key: string): string => `key ${key} of ${source.description}`;

function notFound(source: LiveSource, where: string): MissingValue {
  return new MissingValue("KeyNotFound", `${source.description} has no ${where}`, source.policy);
}
