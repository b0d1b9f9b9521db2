/** Applies the schema of a CRD as the API server does: fills in defaults, and finds missing required fields. Pure. */
import { isObject } from "./json.ts";
import type { JsonObject, JsonValue } from "./objects.ts";
import type { OpenApiSchema } from "./openapi.ts";

/**
 * A copy of the value with the defaults of its schema, as the API server stores it. Ignores `$ref` and `allOf`: CRDs
 * have none.
 */
export function withDefaults(schema: OpenApiSchema, value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((each) => (schema.items ? withDefaults(schema.items, each) : each));
  if (!isObject(value)) return value;
  const { properties = {}, additionalProperties: others } = schema;
  const filled: JsonObject = {};
  for (const [key, each] of Object.entries(value)) {
    const below = Object.hasOwn(properties, key) ? properties[key] : others;
    // A null counts as missing, unless the field is nullable.
    if (each === null && typeof below === "object" && below.nullable !== true) continue;
    filled[key] = typeof below === "object" ? withDefaults(below, each) : each;
  }
  for (const [key, below] of Object.entries(properties))
    if (below.default !== undefined && !Object.hasOwn(filled, key))
      filled[key] = withDefaults(below, structuredClone(below.default));
  return filled;
}

/** The paths of all required fields that are missing, such as `spec.sources[0].secret.name`. `values` are those of `valuesIn`. */
export function missingFields(values: readonly ValueWithSchema<OpenApiSchema>[]): string[] {
  return values.flatMap(({ schema: { required = [] }, value: object, path: at }) =>
    isObject(object) ? required.filter((key) => !Object.hasOwn(object, key)).map((key) => pathBelow(at, key)) : [],
  );
}

/** An object with too few fields, or with not exactly one of several, or a list that is too long. */
interface WrongChoice {
  readonly path: string;
  readonly rule: string;
}

/**
 * The objects that violate `minProperties`, or a `oneOf` of required fields, and the lists that violate `maxItems` and are
 * merged by keys. Ignores other forms of `oneOf`. `values` are those of `valuesIn`.
 */
export function wrongChoices(values: readonly ValueWithSchema<OpenApiSchema>[]): WrongChoice[] {
  return values.flatMap(({ schema: { properties = {}, ...own }, value: object, path }) => {
    if (!isObject(object)) return [];
    const { oneOf = [], minProperties = 0 } = own;
    const choices = oneOf.flatMap(({ required = [] }) => required);
    const given = choices.filter((key) => Object.hasOwn(object, key));
    const isWrong = oneOf.length > 0 && choices.length === oneOf.length && given.length !== 1;
    const few = Object.keys(object).length < minProperties;
    return [
      ...(isWrong ? [{ path, rule: `set exactly one of ${choices.join(", ")}` }] : []),
      ...(few ? [{ path, rule: `set at least ${minProperties} of its fields` }] : []),
      ...Object.entries(object).flatMap(([key, list]) => {
        const { maxItems = Infinity, ...below } = Object.hasOwn(properties, key) ? (properties[key] ?? {}) : {};
        const isMerged = (below["x-kubernetes-list-type"] ?? "atomic") !== "atomic";
        if (!isMerged || !Array.isArray(list) || list.length <= maxItems) return [];
        return [{ path: pathBelow(path, key), rule: `must have at most ${maxItems} elements` }];
      }),
    ];
  });
}

/** The first list that is longer than its schema allows. */
export function longList(schema: OpenApiSchema, value: JsonValue, path: string): WrongChoice | undefined {
  for (const { schema: own, value: each, path: at } of valuesIn(schema, value, path)) {
    const { maxItems = Infinity } = own;
    if (Array.isArray(each) && each.length > maxItems)
      return { path: at, rule: `must have at most ${maxItems} elements` };
  }
  return undefined;
}

/** What leads to the schemas of other values. */
export interface SchemaTree<S> {
  readonly properties?: Readonly<Record<string, S>>;
  readonly items?: S;
  /** Of the values of a map. */
  readonly additionalProperties?: boolean | S;
}

export interface ValueWithSchema<S> {
  readonly schema: S;
  readonly value: JsonValue;
  /** From the outermost value, such as `spec.sources[0]`. */
  readonly path: string;
}

/** Each value in a value that has a schema, with the schema, from the outermost. */
export function valuesIn<S extends SchemaTree<S>>(
  schema: S,
  value: JsonValue,
  path = "",
  found: ValueWithSchema<S>[] = [],
): readonly ValueWithSchema<S>[] {
  found.push({ schema, value, path });
  const { properties = {}, items, additionalProperties: others } = schema;
  if (Array.isArray(value)) {
    if (items !== undefined) for (const [at, each] of value.entries()) valuesIn(items, each, `${path}[${at}]`, found);
  } else if (isObject(value))
    for (const [key, each] of Object.entries(value)) {
      const below = Object.hasOwn(properties, key) ? properties[key] : others;
      if (typeof below === "object") valuesIn<S>(below, each, pathBelow(path, key), found);
    }
  return found;
}

const pathBelow = (path: string, key: string) => (path === "" ? key : `${path}.${key}`);
