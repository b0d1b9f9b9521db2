/** Finds the keys in a Secret or ConfigMap that a binding created or adopts, and does not write. Pure. */
import { FieldPath, isNameable, keySegment } from "../apimachinery/field-path.ts";
import { fieldsAt } from "../apimachinery/fields.ts";
import { pointerTo } from "../apimachinery/json-pointer.ts";
import type { JsonObject, KubeObject } from "../apimachinery/objects.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import type { Whole } from "./manifest.ts";
import { holds, otherHolders } from "./ownership.ts";

const DATA = ["data", "binaryData"];

interface UnwantedKey {
  readonly keys: readonly [field: string, key: string];
  /** The managers that own it beside the binding. */
  readonly others: readonly string[];
  /** The next apply does not remove it: it removes only what the binding owns alone. */
  readonly stays: boolean;
}

export function unwantedKeys(live: KubeObject, { object, creator: { fieldManager } }: Whole): UnwantedKey[] {
  return DATA.flatMap((field) => {
    const [there, ours] = [fieldsAt(live, field), fieldsAt(object, field)];
    return Object.keys(there).flatMap((key): UnwantedKey[] => {
      if (Object.hasOwn(ours, key)) return [];
      const path = isNameable(key) ? new FieldPath([field, key].map(keySegment)) : undefined;
      const others = path === undefined ? [] : otherHolders(live, fieldManager, path);
      const stays = path === undefined || others.length > 0 || !holds(live, fieldManager, path);
      return [{ keys: [field, key], others, stays }];
    });
  });
}

export const removalsOf = (unwanted: readonly UnwantedKey[]): JsonPatchOperation[] =>
  unwanted.map(({ keys }) => ({ op: "remove", path: pointerTo(keys) }));

/** A copy of the object without keys that the binding does not write. */
export function withoutUnwanted(object: KubeObject, whole: Whole): KubeObject {
  const left = structuredClone(object);
  for (const { keys } of unwantedKeys(object, whole)) delete (left[keys[0]] as JsonObject)[keys[1]];
  return left;
}
