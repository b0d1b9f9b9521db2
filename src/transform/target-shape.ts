/** What a target's published schema says of how it is written and released, whatever values it has. */
import type { ElementCondition, FieldPath } from "../apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema, ResolveRef } from "../apimachinery/openapi.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { convert } from "./convert.ts";
import { schemaIn, typesOf } from "./schema-check.ts";

/**
 * How the API server merges what several managers write into a list. `atomic`: the list is one value. `set`: each element
 * is a value of its own. `map`: the fields that are its keys identify an element, and each element is an object of its own.
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
  elementOf(list: FieldPath, conditions: readonly ElementCondition[]): JsonObject;
}

/** A kind that publishes no schema has no required fields, and its lists are atomic: so the API server takes them too. */
export function shapeOf(schema: { root: OpenApiSchema; resolve: ResolveRef } | undefined): TargetShape {
  const find = schema && schemaIn(schema.root, schema.resolve);
  /** What the schema does not know is as if there were none. */
  const at = (path: FieldPath, key?: string): OpenApiSchema => find?.(path, key) ?? {};
  const field = (list: FieldPath, key: string) => at(list.with({ kind: "index", index: 0 }), key);
  return {
    listAt: (list) => listTypeOf(at(list)),
    isAtomic: (object) => at(object)["x-kubernetes-map-type"] === "atomic",
    isRequired(path) {
      const leaf = path.segments.at(-1);
      return leaf?.kind === "key" && at(path.upTo(path.segments.length - 1)).required?.includes(leaf.key) === true;
    },
    defaultAt: (path) => at(path).default,
    elementOf(list, conditions) {
      const element: JsonObject = {};
      for (const condition of conditions) {
        const named = list.with({ kind: "element", conditions });
        element[condition.key] = typed(condition, field(list, condition.key), named);
      }
      const type = listTypeOf(at(list));
      const keys = type.kind === "map" ? type.keys : [];
      for (const key of keys) {
        const value = element[key] ?? field(list, key).default;
        if (value === undefined) throw new Problem("InvalidPath", incomplete(list, keys));
        element[key] = value;
      }
      return element;
    },
  };
}

function listTypeOf(schema: OpenApiSchema): ListType {
  const kind = schema["x-kubernetes-list-type"] ?? "atomic";
  return kind === "map" ? { kind, keys: schema["x-kubernetes-list-map-keys"] ?? [] } : { kind };
}

const ALLOWED = ["integer", "number", "boolean"] as const;

function typed({ key, value }: ElementCondition, schema: OpenApiSchema, path: FieldPath): JsonValue {
  const types = typesOf(schema);
  const type = types.length === 1 ? ALLOWED.find((each) => each === types[0]) : undefined;
  if (type === undefined) return types.includes("integer") && /^-?(0|[1-9]\d*)$/.test(value) ? Number(value) : value;
  const converted = attemptSync(() => convert(value, type, key));
  if (converted instanceof Problem) throw new Problem("InvalidPath", `${path}: ${converted.message}`);
  return converted;
}

function incomplete(list: FieldPath, keys: readonly string[]): string {
  return `${list}: an element is told by ${keys.join(" and ")}; name all, as in ${list}[${keys.map((key) => `${key}=...`).join(",")}]`;
}
