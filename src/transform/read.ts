/** A source that was read and a place in it come in, the value there goes out, still sealed. Pure. */
import type { FieldPath } from "../model/field-path.ts";
import type { JsonValue } from "../model/kube-object.ts";
import { Problem } from "../model/problem.ts";
import type { SecretValue } from "../model/secret-value.ts";
import type { LiveSource } from "../model/source-value.ts";

export type DataSource = Extract<LiveSource, { kind: "data" }>;
export type ObjectSource = Extract<LiveSource, { kind: "object" }>;

/** The text of one key, to the letter. Throws Problem("KeyNotFound") and Problem("NotUtf8"). */
export function readText(source: DataSource, key: string): SecretValue<string> {
  const bytes = source.data.get(key);
  if (bytes === undefined) throw new Problem("KeyNotFound", `${source.description} has no key ${key}`);
  return bytes.map((value) => {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(value);
    } catch {
      throw new Problem(
        "NotUtf8",
        `key ${key} of ${source.description} is not UTF-8 text, so it can't be written as text`,
      );
    }
  });
}

/** The value at a path, of any JSON type. Throws Problem("KeyNotFound") if absent or null, and what `exact` throws. */
export function readField(source: ObjectSource, path: FieldPath): SecretValue<JsonValue> {
  return source.object.map((object) => exact(path.get(object), source, path.toString()));
}

/**
 * The value of `where` in an object source, if it came through JSON.parse unharmed. Throws Problem("KeyNotFound") for
 * undefined and null, and Problem("TypeMismatch") for integers past 2^53, which have lost their last digits by now.
 */
export function exact(value: unknown, source: ObjectSource, where: string): JsonValue {
  if (value === undefined || value === null) {
    throw new Problem("KeyNotFound", `${source.description} has no field ${where}`);
  }
  if (!isExact(value)) {
    throw new Problem(
      "TypeMismatch",
      `field ${where} of ${source.description} has an integer past 2^53, too long to copy`,
    );
  }
  return value as JsonValue;
}

function isExact(value: unknown): boolean {
  if (typeof value === "number") return !Number.isInteger(value) || Number.isSafeInteger(value);
  return typeof value !== "object" || value === null || Object.values(value).every(isExact);
}
