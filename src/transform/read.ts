/** Reads values of sources, still sealed. Pure. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { MAX_VALUE_LEVELS, nestsDeeper } from "../apimachinery/json.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import { type JsonValue, plainWord } from "../apimachinery/objects.ts";
import { MissingValue, Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import { firstNames, suggestNames } from "../apimachinery/suggest-names.ts";
import type { LiveSource } from "./live-source.ts";

export type DataSource = Extract<LiveSource, { kind: "data" }>;
export type ObjectSource = Extract<LiveSource, { kind: "object" }>;
export type PresentSource = DataSource | ObjectSource;

/** The source if it exists. Throws MissingValue("SourceNotFound") or MissingValue("NotGranted"). */
export function present(source: LiveSource): PresentSource {
  if (source.kind === "absent") throw source.problem;
  return source;
}

/** The bytes of one key. Throws MissingValue("KeyNotFound"). */
export function readBytes(source: DataSource, key: string): SecretValue<Uint8Array> {
  const bytes = source.data.get(key);
  if (bytes === undefined)
    throw missingIn(source, `no key ${plainWord(key)}${source.policy.optional ? "" : existing(source, key)}`);
  return bytes;
}

/** A ranking compares each letter of a key with each letter of a name, and a binding may name thousands of keys. */
const MAX_COMPARISONS = 10_000;
/** Longer names are seldom meant, and a message has little room. */
const MAX_KEY_LENGTH = 64;

const sortedNames = new WeakMap<DataSource["data"], { names: readonly string[]; letters: number }>();

/** The names of the existing keys: the most similar first, unless there are too many to compare. */
function existing({ data }: DataSource, key: string): string {
  const { names, letters } = getOrInsert(sortedNames, data, () => namesOf(data));
  if (names.length === 0) return "";
  const isComparable = letters * Math.min(key.length, MAX_KEY_LENGTH) <= MAX_COMPARISONS;
  return `; ${isComparable ? suggestNames("it", key, names) : firstNames("it", names)}`;
}

function namesOf(data: DataSource["data"]) {
  const names = [...data.keys()]
    .filter((name) => name.length <= MAX_KEY_LENGTH)
    .sort()
    .map(plainWord);
  return { names, letters: names.join("").length };
}

const texts = new WeakMap<SecretValue<Uint8Array>, SecretValue<string>>();

/** The exact text of a key, decoded once for all fields. Throws MissingValue("KeyNotFound") and Problem("NotUtf8"). */
export function readText(source: DataSource, key: string): SecretValue<string> {
  const bytes = readBytes(source, key);
  return getOrInsert(texts, bytes, () => bytes.map((each) => textOf(each, keyOf(source, key))));
}

/**
 * The value at a path, of any JSON type. Throws MissingValue("KeyNotFound") if absent or null, and
 * Problem("InvalidValue").
 */
export function readField(source: ObjectSource, path: FieldPath): SecretValue<JsonValue> {
  return source.object.map((object) => {
    const value = there(path.get(object), source, `field ${path}`);
    if (!nestsDeeper(value, MAX_VALUE_LEVELS)) return value;
    const what = `field ${path} of ${source.description} has more than ${MAX_VALUE_LEVELS} levels`;
    throw new Problem("InvalidValue", `${what}; read a field below it`);
  });
}

/** The value if it exists. Throws MissingValue("KeyNotFound") for undefined and null. */
export function there(value: unknown, source: PresentSource, where: string): JsonValue {
  if (value === undefined || value === null) throw missingIn(source, `no ${where}`);
  return value as JsonValue;
}

/** The text of bytes. Throws Problem("NotUtf8"), which names `subject`. */
export function textOf(bytes: Uint8Array, subject: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const message = `${subject} is not UTF-8 text; write it to a field of bytes, or to a string field with {{base64 source.key}}`;
    throw new Problem("NotUtf8", message);
  }
}

/** `key tls.crt of Secret registry/bucket`, for messages. */
export const keyOf = (source: LiveSource, key: string): string => `key ${plainWord(key)} of ${source.description}`;

/** `what` is missing in the source, such as `no key host`. Nothing needs to be done about an optional value. */
export function missingIn({ description, policy }: LiveSource, what: string): MissingValue {
  const advice = policy.optional ? "" : "; add it, or correct the binding";
  return new MissingValue("KeyNotFound", `${description} has ${what}${advice}`, policy);
}
