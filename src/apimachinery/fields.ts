/** Reads fields of objects of unknown types. No I/O. */
import type { FieldPath } from "./field-path.ts";
import { isObject } from "./json.ts";
import type { JsonObject, JsonValue, KubeObject } from "./objects.ts";
import { attemptSync, Problem } from "./problem.ts";

/** The value below these keys, or undefined. */
export const at = (value: unknown, ...keys: readonly string[]): unknown =>
  keys.reduce((from, key) => (isObject(from) ? from[key] : undefined), value);

/** The number, also as text; NaN for anything else, of which `Number` may throw. */
export const numberOf = (value: unknown): number =>
  ["number", "bigint", "string"].includes(typeof value) ? Number(value) : Number.NaN;

export function fieldsAt(value: unknown, ...keys: readonly string[]): JsonObject {
  const found = at(value, ...keys);
  return isObject(found) ? found : {};
}

export function listAt(value: unknown, ...keys: readonly string[]): readonly unknown[] {
  const found = at(value, ...keys);
  return Array.isArray(found) ? found : [];
}

/** A condition in a status. */
export const conditionIn = (status: unknown, type: string): JsonObject | undefined =>
  listAt(status, "conditions")
    .filter(isObject)
    .find((each) => each["type"] === type);

/** The value at a path; undefined if conditions in the path match more than one element. */
export function valueAt(object: KubeObject, path: FieldPath): unknown {
  const value = attemptSync(() => path.get(object));
  return value instanceof Problem ? undefined : value;
}

/** A new object with only these fields of another object. The paths contain only keys. Missing fields are omitted. */
export function pickFields(object: object, paths: readonly FieldPath[]): JsonObject {
  const picked: JsonObject = {};
  for (const { segments } of paths) {
    const keys = segments.flatMap((segment) => (segment.kind === "key" ? segment.key : []));
    const last = keys.pop();
    if (last === undefined) continue;
    const [parent, value] = [at(object, ...keys), at(object, ...keys, last)];
    if (value === undefined || !isObject(parent) || !Object.hasOwn(parent, last)) continue;
    const into = keys.reduce<JsonObject>((from, key) => {
      const below = Object.hasOwn(from, key) ? from[key] : undefined;
      const next: JsonObject = isObject(below) ? below : {};
      from[key] = next;
      return next;
    }, picked);
    into[last] = value as JsonValue;
  }
  return picked;
}

/** The texts at a key of each object in a list; undefined if the list is empty or an object has no text there. */
export function namesIn(list: readonly unknown[], key: string): string[] | undefined {
  const names = list.map((each) => at(each, key));
  return names.length > 0 && names.every((name) => typeof name === "string") ? names : undefined;
}
