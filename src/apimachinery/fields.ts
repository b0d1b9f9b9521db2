/** Reads fields of an object whose types are not known. No I/O. */
import type { FieldPath } from "./field-path.ts";
import { isObject } from "./json.ts";
import type { JsonObject, KubeObject } from "./objects.ts";
import { attemptSync, Problem } from "./problem.ts";

/** The value below these keys, or undefined. */
export const at = (value: unknown, ...keys: readonly string[]): unknown =>
  keys.reduce((from, key) => (isObject(from) ? from[key] : undefined), value);

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

/** The value at a path. Conditions in it may fit more than one element: then it is not known which is meant. */
export function valueAt(object: KubeObject, path: FieldPath): unknown {
  const value = attemptSync(() => path.get(object));
  return value instanceof Problem ? undefined : value;
}

/** The names that a list of objects has at a key; undefined where it is empty, or one has none. */
export function namesIn(list: readonly unknown[], key: string): string[] | undefined {
  const names = list.map((each) => at(each, key));
  return names.length > 0 && names.every((name) => typeof name === "string") ? names : undefined;
}
