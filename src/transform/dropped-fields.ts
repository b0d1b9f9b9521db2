/**
 * Finds the fields of one version of a kind that the API server drops when the object passes through another version,
 * by the rules of its pruning. Pure.
 */
import { keySegment } from "../apimachinery/field-path.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { itemsOf, type KindSchema, type OpenApiSchema } from "../apimachinery/openapi.ts";
import { below } from "./path-advice.ts";

/** Every version keeps these. */
const META = ["apiVersion", "kind", "metadata"];
/** Deeper schemas are rare. Fields below this depth count as missing, which costs reads but loses nothing. */
const MAX_DEPTH = 100;

/** Keeps everything, including null. Like a field without a schema. */
const KEEPS_ALL: OpenApiSchema = { "x-kubernetes-preserve-unknown-fields": true, nullable: true };
/** For undeclared fields: keeps texts and numbers, and empties objects. */
const KEEPS_NO_KEY: OpenApiSchema = { type: "object", nullable: true };
const META_FIELDS =
  "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp " +
  "deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields";
/** The metadata of an embedded resource has these fields, whatever its schema says. */
const OBJECT_META: OpenApiSchema = {
  type: "object",
  nullable: true,
  properties: Object.fromEntries(META_FIELDS.split(" ").map((key) => [key, KEEPS_ALL])),
};

/**
 * Whether objects in version `other` may have fields that `own` would drop. Fields of another type, and nulls, count
 * too.
 */
export function lacksFields(own: KindSchema, other: KindSchema): boolean {
  const compared = new Map<OpenApiSchema, Set<OpenApiSchema>>();
  const lacks = (ours: OpenApiSchema, theirs: OpenApiSchema, depth: number): boolean => {
    const [a, b] = [opened(ours, own), opened(theirs, other)];
    if (b.nullable && !a.nullable) return true;
    if (keepsUnknown(a) && !hasParts(a)) return false;
    if (depth > MAX_DEPTH) return true;
    // Recursive schemas are compared once.
    const partners = compared.get(a) ?? new Set();
    if (partners.has(b)) return false;
    compared.set(a, partners.add(b));
    const isLacking = (found: OpenApiSchema | undefined, child: OpenApiSchema | undefined) =>
      child !== undefined && (found === undefined || lacks(found, child, depth + 1));
    if (a === KEEPS_NO_KEY ? keepsUnknown(b) : isOther(a, b)) return true;
    // Fields that only `own` declares count too: it prunes inside them, and the other version may not.
    return (
      [...new Set([...namesIn(a), ...namesIn(b)])].some(
        (key) => !(depth === 0 && META.includes(key)) && isLacking(fieldOf(a, key), fieldOf(b, key)),
      ) ||
      isLacking(restOf(a), restOf(b)) ||
      ((a.items ?? b.items) !== undefined && isLacking(itemOf(a), itemOf(b)))
    );
  };
  return lacks(own.root, other.root, 0);
}

/**
 * The paths of an object, as version `other` shows it, that `own` would drop. Excludes fields with the default of
 * `other`, which sets them again.
 */
export function* droppedPaths(object: object, own: KindSchema, other: KindSchema): Generator<string> {
  yield* dropped(object as JsonObject, own.root, other.root, "");

  function* dropped(
    value: JsonValue,
    ours: OpenApiSchema,
    theirs: OpenApiSchema | undefined,
    path: string,
  ): Generator<string> {
    const [a, b] = [opened(ours, own), theirs && opened(theirs, other)];
    for (const [index, element] of Array.isArray(value) ? value.entries() : [])
      yield* droppedAt(`${path}[${index}]`, element, itemOf(a), b && itemOf(b));
    if (!isObject(value)) return;
    for (const [key, child] of Object.entries(value)) {
      if (path === "" && META.includes(key)) continue;
      const declared = b && fieldOf(b, key);
      if (declared && isDefault(child, opened(declared, other))) continue;
      yield* droppedAt(below(path, keySegment(key)), child, fieldOf(a, key), declared);
    }
  }

  /** The API server replaces a null by the default, or drops it, unless the field is nullable. */
  function* droppedAt(
    path: string,
    value: JsonValue,
    ours: OpenApiSchema | undefined,
    theirs: OpenApiSchema | undefined,
  ): Generator<string> {
    if (ours === undefined || (value === null && !opened(ours, own).nullable)) yield path;
    else yield* dropped(value, ours, theirs, path);
  }

  function isDefault(value: JsonValue, schema: OpenApiSchema): boolean {
    const { default: given, properties = {} } = schema;
    if (given === undefined) return false;
    const filled = withDefaults(given as JsonValue, schema);
    if (sameJson(value, filled)) return true;
    if (!isObject(value) || !isObject(filled)) return false;
    if (!Object.keys(filled).every((key) => Object.hasOwn(value, key))) return false;
    return Object.entries(value).every(([key, child]) => {
      if (Object.hasOwn(filled, key)) return sameJson(child, filled[key]);
      const declared = Object.hasOwn(properties, key) ? properties[key] : undefined;
      return declared !== undefined && isDefault(child, opened(declared, other));
    });
  }

  /** Fills in a default with the defaults of the fields inside it, as the API server does. */
  function withDefaults(value: JsonValue, schema: OpenApiSchema, depth = 0): JsonValue {
    if (depth > MAX_DEPTH) return value;
    const at = opened(schema, other);
    if (Array.isArray(value)) return value.map((each) => withDefaults(each, itemOf(at), depth + 1));
    if (!isObject(value)) return value;
    const given = Object.entries(at.properties ?? {}).flatMap(([key, child]) => {
      const { default: missing } = opened(child, other);
      return missing === undefined ? [] : [[key, missing] as const];
    });
    const all = Object.entries({ ...Object.fromEntries(given), ...value } as JsonObject);
    return Object.fromEntries(
      all.map(([key, child]) => [key, withDefaults(child, fieldOf(at, key) ?? KEEPS_ALL, depth + 1)]),
    );
  }
}

function opened(schema: OpenApiSchema, { resolve }: KindSchema): OpenApiSchema {
  const { $ref, allOf } = schema;
  const ref = $ref ?? (allOf?.length === 1 ? allOf[0]?.$ref : undefined);
  return ref === undefined ? schema : (resolve(ref) ?? KEEPS_ALL);
}

/** A schema without a type accepts any value, unless it describes a number, a text or fields. */
function keepsUnknown(schema: OpenApiSchema): boolean {
  if (schema["x-kubernetes-preserve-unknown-fields"]) return true;
  return schema.type === undefined && !schema["x-kubernetes-int-or-string"] && !hasParts(schema);
}

const hasParts = (schema: OpenApiSchema) =>
  namesIn(schema).length > 0 ||
  [schema.properties, schema.additionalProperties, schema.items].some((part) => part !== undefined);

/** Whether the schemas accept values of different types, or one accepts keys that the other does not. */
function isOther(a: OpenApiSchema, b: OpenApiSchema): boolean {
  if (keepsUnknown(a)) return false;
  const isText = "x-kubernetes-int-or-string";
  return keepsUnknown(b) || a.type !== b.type || Boolean(a[isText]) !== Boolean(b[isText]);
}

/** The names of the fields in a schema. */
function namesIn({ properties = {}, "x-kubernetes-embedded-resource": isResource }: OpenApiSchema): string[] {
  return [...Object.keys(properties), ...(isResource ? META : [])];
}

/** The schema of a field; undefined if it is dropped. */
function fieldOf(schema: OpenApiSchema, key: string): OpenApiSchema | undefined {
  const { properties = {} } = schema;
  if (schema["x-kubernetes-embedded-resource"] && META.includes(key))
    return key === "metadata" ? OBJECT_META : KEEPS_ALL;
  return Object.hasOwn(properties, key) ? properties[key] : restOf(schema);
}

/** The schema of fields that are not declared by name; undefined if they are dropped. */
function restOf(schema: OpenApiSchema): OpenApiSchema | undefined {
  const { additionalProperties: rest } = schema;
  if (rest !== undefined && rest !== false) return rest === true ? KEEPS_NO_KEY : rest;
  return keepsUnknown(schema) ? KEEPS_ALL : undefined;
}

const itemOf = (schema: OpenApiSchema): OpenApiSchema =>
  itemsOf(schema) ?? (keepsUnknown(schema) ? KEEPS_ALL : KEEPS_NO_KEY);
