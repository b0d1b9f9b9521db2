/** Spells quantities of built-in kinds as the API server does, which normalizes them: `0.5` becomes `500m`. Pure. */
import { type FieldPath, isNameable } from "../apimachinery/field-path.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { isSameQuantity } from "../apimachinery/quantity.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";

/** The field with each quantity in the notation of the object, if both are equal. So an equal quantity is no difference. */
export function inNotationOf<T extends Pick<PlannedField, "path" | "value">>(
  live: unknown,
  field: T,
  shape: TargetShape,
): T {
  const { path, value } = field;
  const there = path.get(live) as JsonValue | undefined;
  return { ...field, value: value.map((wanted) => spelled(wanted, there, path, shape)) };
}

function spelled(wanted: JsonValue, there: JsonValue | undefined, path: FieldPath, shape: TargetShape): JsonValue {
  if (there === undefined || sameJson(wanted, there)) return wanted;
  if (isObject(wanted) && isObject(there)) {
    const entries = Object.entries(wanted).map(([key, child]): [string, JsonValue] => {
      const isThere = isNameable(key) && Object.hasOwn(there, key);
      return [key, isThere ? spelled(child, there[key], path.with({ kind: "key", key }), shape) : child];
    });
    return Object.fromEntries(entries);
  }
  if (Array.isArray(wanted) && Array.isArray(there))
    return wanted.map((child, index) => spelled(child, there[index], path.with({ kind: "index", index }), shape));
  const isSame = typeof wanted === "string" && typeof there === "string" && isSameQuantity(wanted, there);
  return isSame && shape.isNormalizedQuantity(path) ? there : wanted;
}
