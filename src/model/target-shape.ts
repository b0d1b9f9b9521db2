/** What a target's schema says of how it is written and released, whatever stands in it. Types only. */
import type { Condition, FieldPath } from "../apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";

/**
 * How the API server merges what several managers write into a list. `atomic`: the list is one value. `set`: each element
 * is a value of its own. `map`: elements are told by the fields that are its keys, and each is an object of its own.
 */
export type ListType = { readonly kind: "atomic" | "set" } | { readonly kind: "map"; readonly keys: readonly string[] };

export interface TargetShape {
  listAt(list: FieldPath): ListType;
  /** Whether the API server takes the object as one value, which one manager holds as a whole. */
  isAtomic(object: FieldPath): boolean;
  /** Whether the object that holds the path's leaf can't be without it. */
  isRequired(path: FieldPath): boolean;
  /** What the API server puts there where nothing is said; undefined if nothing. */
  defaultAt(path: FieldPath): JsonValue | undefined;
  /**
   * What conditions say of an element of a list, with the types that the fields have; and the defaults of its keys in a map
   * list. Throws Problem("InvalidPath") when a text is none of its type, or a key is left open.
   */
  elementOf(list: FieldPath, conditions: readonly Condition[]): JsonObject;
}
