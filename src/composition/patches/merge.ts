/** Merges a value into an existing value, by the rules of the library that Crossplane uses (dario.cat/mergo). */
import type { Segment } from "../../apimachinery/field-path.ts";
import { canonicalJson, isObject, set } from "../../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { getField, setField } from "./fields.ts";
import { textOf } from "./path.ts";

/** How a merge decides. An empty value ("", 0, false, [], {}) is always replaced. */
export interface MergePolicy {
  /** Whether the new value replaces the existing one. */
  readonly overwrites: boolean;
  /** Whether lists are appended to lists. */
  readonly appends: boolean;
}

/**
 * Writes a value by a policy; without one, it replaces the existing value. The value becomes part of the object. Throws
 * Problem("InvalidValue").
 */
export function mergeValue(
  object: JsonObject,
  path: readonly Segment[],
  value: JsonValue,
  policy: MergePolicy | undefined,
): void {
  const there = policy === undefined ? undefined : getField(object, path);
  let result = value;
  if (policy !== undefined && there !== undefined && there !== null && value !== null) {
    const isAppended = policy.appends && Array.isArray(there) && Array.isArray(value);
    const holder = { there };
    mergeField(holder, "there", isAppended ? without(value, there) : value, { ...policy, path });
    result = holder.there;
  }
  setField(object, path, result);
}

interface Merge extends MergePolicy {
  readonly path: readonly Segment[];
}

function mergeField(target: JsonObject, key: string, given: JsonValue, merge: Merge): void {
  const there = Object.hasOwn(target, key) ? target[key] : undefined;
  if (given === null) {
    if (merge.overwrites) set(target, key, null);
  } else if (Array.isArray(given) && merge.appends) {
    set(target, key, [...listAt(there ?? [], merge), ...given]);
  } else {
    if (isObject(given) && isObject(there)) {
      for (const [field, value] of Object.entries(given)) mergeField(there, field, value, merge);
      if (!isEmpty(there)) return;
    }
    if (merge.overwrites || there === 0 || isEmpty(there)) set(target, key, given);
  }
}

function listAt(value: JsonValue, { path }: Merge): JsonValue[] {
  if (Array.isArray(value)) return value;
  const message = `a list can be appended only to a list, but ${textOf(path)} has another value, there or below it; use the policy ForceMergeObjects or Replace`;
  throw new Problem("InvalidValue", message);
}

/** The elements that a list does not contain yet. */
function without(list: readonly JsonValue[], there: readonly JsonValue[]): JsonValue[] {
  const known = new Set(there.map(canonicalJson));
  return list.filter((element) => !known.has(canonicalJson(element)));
}

/** Whether a field with the value counts as missing, except for zero. */
export function isEmpty(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === "" || value === false;
}

/** A deep copy. */
export function copyJson(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(copyJson);
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const [key, each] of Object.entries(value)) set(copy, key, copyJson(each));
  return copy;
}
