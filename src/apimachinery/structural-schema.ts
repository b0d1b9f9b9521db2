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

/** The paths of all required fields that are missing, such as `spec.sources[0].secret.name`. */
export function missingFields(schema: OpenApiSchema, value: JsonValue, path = ""): string[] {
  return [...objectsIn(schema, value, path)].flatMap(({ schema: { required = [] }, object, path: at }) =>
    required.filter((key) => !Object.hasOwn(object, key)).map((key) => (at === "" ? key : `${at}.${key}`)),
  );
}

/** An object with too few fields, or with not exactly one of several, or a list that is too long. */
interface WrongChoice {
  readonly path: string;
  readonly rule: string;
}

/**
 * The objects that violate `minProperties`, or a `oneOf` of required fields, and the lists that violate `maxItems` and are
 * merged by keys. Ignores other forms of `oneOf`.
 */
export function wrongChoices(schema: OpenApiSchema, value: JsonValue): WrongChoice[] {
  return [...objectsIn(schema, value, "")].flatMap(({ schema: { properties = {}, ...own }, object, path }) => {
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
        return [{ path: path === "" ? key : `${path}.${key}`, rule: `must have at most ${maxItems} elements` }];
      }),
    ];
  });
}

/** The first list that is longer than its schema allows. The elements of such a list are not visited. */
export function longList(schema: OpenApiSchema, value: JsonValue, path: string): WrongChoice | undefined {
  if (Array.isArray(value)) {
    const { items, maxItems = Infinity } = schema;
    if (value.length > maxItems) return { path, rule: `must have at most ${maxItems} elements` };
    if (items === undefined) return undefined;
    return firstOf(value.entries(), ([at, each]) => longList(items, each, `${path}[${at}]`));
  }
  if (!isObject(value)) return undefined;
  const { properties = {} } = schema;
  return firstOf(Object.entries(value), ([key, each]) => {
    const child = Object.hasOwn(properties, key) ? properties[key] : undefined;
    return child && longList(child, each, `${path}.${key}`);
  });
}

function firstOf<T, R>(all: Iterable<T>, find: (each: T) => R | undefined): R | undefined {
  for (const each of all) {
    const found = find(each);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Each object in the value with its schema, from the outermost. */
function* objectsIn(
  schema: OpenApiSchema,
  value: JsonValue,
  path: string,
): Generator<{ schema: OpenApiSchema; object: JsonObject; path: string }> {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items !== undefined) for (const [at, each] of value.entries()) yield* objectsIn(items, each, `${path}[${at}]`);
    return;
  }
  if (!isObject(value)) return;
  yield { schema, object: value, path };
  const { properties = {} } = schema;
  for (const [key, each] of Object.entries(value)) {
    const child = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (child !== undefined) yield* objectsIn(child, each, path === "" ? key : `${path}.${key}`);
  }
}
