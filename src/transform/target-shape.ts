/** Describes how a target is written and released, from its published schema and without values. */
import type { ElementCondition, FieldPath } from "../apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { KindSchema, OpenApiSchema } from "../apimachinery/openapi.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { convert } from "./convert.ts";
import { schemaIn, typesOf } from "./schema-check.ts";

/**
 * How the API server merges the writes of several managers to a list. `atomic`: the list is one value. `set`: each
 * element is a value of its own. `map`: the key fields identify an element, and each element is an object of its own.
 */
export type ListType = { readonly kind: "atomic" | "set" } | { readonly kind: "map"; readonly keys: readonly string[] };

export type TargetShape = ReturnType<typeof shapeOf>;

/** Without a schema, no field is required, and all lists are atomic: the API server treats them so too. */
export function shapeOf(schema: KindSchema | undefined) {
  const find = schema && schemaIn(schema.root, schema.resolve);
  /** Unknown parts of the schema count as empty. */
  const at = (path: FieldPath, key?: string): OpenApiSchema => find?.(path, key) ?? {};
  const field = (list: FieldPath, key: string) => at(list.with({ kind: "index", index: 0 }), key);
  return {
    listAt: (list: FieldPath): ListType => listTypeOf(at(list)),
    /** Whether the API server treats the object as one value with one owner. */
    isAtomic: (object: FieldPath): boolean => at(object)["x-kubernetes-map-type"] === "atomic",
    /** Whether the API server normalizes the quantity at the path: in built-in kinds, and not in custom resources. */
    isNormalizedQuantity: (path: FieldPath): boolean => isQuantity(at(path)),
    /** Whether the object that contains the path's last field requires it. */
    isRequired(path: FieldPath): boolean {
      const leaf = path.segments.at(-1);
      return leaf?.kind === "key" && at(path.upTo(path.segments.length - 1)).required?.includes(leaf.key) === true;
    },
    /** Whether a rule of the schema forbids every change of the value once it is set. */
    isImmutable: (path: FieldPath): boolean =>
      [path, ...path.segments].some((_, n) => isFixedBy(at(path.upTo(n)), path, n)),
    /** The default of the schema; undefined if none. */
    defaultAt: (path: FieldPath): JsonValue | undefined => at(path).default,
    /**
     * The fields of a list element that conditions give, with their types, and the defaults of missing keys in a map
     * list. Throws Problem("InvalidPath") if a text does not have the type of its field, or a key has neither a condition
     * nor a default.
     */
    elementOf(list: FieldPath, conditions: readonly ElementCondition[]): JsonObject {
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

/**
 * Whether the rules of the first `length` segments of a path fix the rest of it, or a part around it: `self.a == oldSelf.a`, alone, beside
 * other conditions, or once it is set.
 */
function isFixedBy(schema: OpenApiSchema, { segments }: FieldPath, length: number): boolean {
  const keys = segments.slice(length).flatMap((segment) => (segment.kind === "key" ? [segment.key] : []));
  if (keys.length < segments.length - length) return false;
  const places = keys.map((_, n) => `.${keys.slice(0, n + 1).join(".")}`);
  const fixed = ["", ...places].flatMap((at) => [`self${at}==oldSelf${at}`, `oldSelf${at}==self${at}`]);
  return (schema["x-kubernetes-validations"] ?? []).some(({ rule }) =>
    conditionsOf(rule).some((each) => fixed.includes(each)),
  );
}

/** The conditions that a rule always demands, or once a field is set. None if it has alternatives; nor any in parentheses. */
function conditionsOf(rule: string): string[] {
  const text = rule.replaceAll(/\s/g, "").replace(/^!has\(oldSelf\.[\w.]+\)\|\|/, "");
  if (text.includes("||") || text.includes("?")) return [];
  let open = 0;
  return text.split("&&").filter((each) => {
    const isOutside = open === 0;
    open += each.split("(").length - each.split(")").length;
    return isOutside;
  });
}

/** Of a built-in kind. In a custom resource, a quantity is an integer or a string. */
function isQuantity(schema: OpenApiSchema): boolean {
  const types = typesOf(schema);
  return types.includes("string") && types.includes("number");
}

const ALLOWED = ["integer", "number", "boolean"] as const;

function typed({ key, value }: ElementCondition, schema: OpenApiSchema, path: FieldPath): JsonValue {
  const types = typesOf(schema);
  const type = types.length === 1 ? ALLOWED.find((each) => each === types[0]) : undefined;
  if (type === undefined) return types.includes("integer") && /^-?(0|[1-9]\d*)$/.test(value) ? Number(value) : value;
  const converted = attemptSync(() => convert(value, type, key));
  if (converted instanceof Problem) throw new Problem("InvalidPath", converted.within(String(path)));
  return converted;
}

function incomplete(list: FieldPath, keys: readonly string[]): string {
  return `${list}: ${keys.join(" and ")} identify an element; name all of them, as in ${list}[${keys.map((key) => `${key}=...`).join(",")}]`;
}
