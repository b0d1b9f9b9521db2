/** Checks a plan against the target's schema as the API server would, but quotes no value. Pure. */
import { type FieldPath, isNameable, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { Remembered } from "../apimachinery/maps.ts";
import { type JsonObject, type JsonValue, plainWord } from "../apimachinery/objects.ts";
import { itemsOf, type OpenApiSchema, type OpenApiType, type ResolveRef } from "../apimachinery/openapi.ts";
import { attemptSync, eachOf, MAX_PROBLEMS, Problem } from "../apimachinery/problem.ts";
import { below, dottedKeyHint, elementAt, elementHint, type Known, type Place, unknownField } from "./path-advice.ts";
import type { Plan, PlannedField } from "./plan-types.ts";
import { brokenRule } from "./schema-rules.ts";

/** The target's schema at a path, or at a key below it; undefined if it has none there. */
export type SchemaAt = (path: FieldPath, key?: string) => OpenApiSchema | undefined;

/** `schemaWithin` finds the schema of a part of the value, and remembers no path to it. Throws Problem("InvalidPath"). */
export function assertNotInManagedFields(
  { path, value, fromSecret }: PlannedField,
  schemaAt: SchemaAt,
  schemaWithin: SchemaAt,
): void {
  if (!fromSecret) return;
  const list = listAbove(path, schemaAt) ?? listWithin(path, value.reveal(), schemaWithin);
  if (list === "none" || list === undefined) return;
  const what = listType(list, schemaWithin) === "set" ? "an element" : "a key of an element";
  // The path to a list within the value may contain keys of the Secret.
  const where = path.startsWith(list) ? list : "a list in the value";
  throw new Problem("InvalidPath", {
    at: [String(path)],
    what: `the API server copies ${what} of ${where} into metadata.managedFields in plain text, which all readers of the object can see, so a binding can't write a value of a Secret there`,
    fix: "take the value from a ConfigMap, or write another field",
  });
}

const isAtomic = (path: FieldPath, schemaAt: SchemaAt) => schemaAt(path)?.["x-kubernetes-map-type"] === "atomic";
const listType = (path: FieldPath, schemaAt: SchemaAt) => schemaAt(path)?.["x-kubernetes-list-type"] ?? "atomic";

/**
 * The list to which the path belongs. `none` if it is in a list or an object that is one value: managedFields contain
 * nothing of it.
 */
function listAbove(path: FieldPath, schemaAt: SchemaAt): FieldPath | "none" | undefined {
  for (const [n, segment] of path.segments.entries()) {
    const list = path.upTo(n);
    if (segment.kind === "key" && isAtomic(list, schemaAt)) return "none";
    if (segment.kind === "key") continue;
    const type = listType(list, schemaAt);
    if (type !== "map") return type === "set" ? list : "none";
    const [next, ...more] = path.segments.slice(n + 1);
    const keys = schemaAt(list)?.["x-kubernetes-list-map-keys"] ?? [];
    // The value also contains the keys of an element that the path names by index.
    const isKey = next === undefined ? segment.kind === "index" : next.kind === "key" && keys.includes(next.key);
    if (isKey && more.length === 0) return list;
  }
  return undefined;
}

function listWithin(path: FieldPath, value: JsonValue, schemaAt: SchemaAt): FieldPath | undefined {
  if (typeof value !== "object" || value === null || isAtomic(path, schemaAt)) return undefined;
  if (Array.isArray(value)) return value.length > 0 && listType(path, schemaAt) !== "atomic" ? path : undefined;
  for (const [key, child] of Object.entries(value)) {
    if (typeof child !== "object" || !isNameable(key)) continue;
    const found = listWithin(path.with({ kind: "key", key }), child, schemaAt);
    if (found !== undefined) return found;
  }
  return undefined;
}

const STRING_MAP: OpenApiSchema = { type: "object", additionalProperties: { type: "string" } };
const ANYTHING: OpenApiSchema = {};
/**
 * The values of a map with `additionalProperties: true` in a CRD: single values, and lists of them. The API server removes all fields of
 * objects in there.
 */
const NO_FIELDS: OpenApiSchema = { properties: {} };
/**
 * The limit for matching the patterns of a schema for one target, in instructions times characters: about 10 ms, at
 * most 50 ms.
 */
const MAX_EFFORT = 1_000_000;

/**
 * Returns the check of the fields of one target, which follows the path of a field through the kind's schema. It throws
 * Problem("UnknownField") with the known names, Problem("TypeMismatch") if a value or a segment of the path has another type than the
 * field, Problem("InvalidValue") with the rule that a value breaks, and what `assertNotInManagedFields` throws. Accepts what the schema
 * leaves open, and ignores rules about several fields (required, oneOf, CEL), which only the API server checks.
 */
export function schemaChecker(root: OpenApiSchema, resolveRef: ResolveRef): (field: PlannedField) => void {
  const walk = new Walk(root, resolveRef);
  const schemaAt = schemaIn(root, resolveRef);
  return (field) => {
    walk.check(field, schemaAt(field.path));
    assertNotInManagedFields(field, schemaAt, (path) => lookUp(walk, path));
  };
}

/** Checks all fields of a plan. Throws the first Problem. */
export const checkAgainstSchema = (plan: Pick<Plan, "fields">, root: OpenApiSchema, resolveRef: ResolveRef): void =>
  plan.fields.forEach(schemaChecker(root, resolveRef));

/**
 * Checks a manifest without its metadata. Manifests contain no secrets, so messages name every field. Throws the first Problem, which has all
 * others.
 */
export function checkManifest(manifest: JsonObject, root: OpenApiSchema, resolveRef: ResolveRef): void {
  const { metadata: _, ...rest } = manifest;
  const walk = new Walk(root, resolveRef);
  walk.checkWithin(walk.resolve(root), rest, "");
}

/** By the root of a schema. A kind with a new schema has a new root. */
const lookups = new WeakMap<OpenApiSchema, SchemaAt>();

/**
 * Returns a function that finds the schema at a path, or at a key below it; undefined for paths that the check refuses. It remembers its
 * answers, and is the same function each time.
 */
export function schemaIn(root: OpenApiSchema, resolveRef: ResolveRef): SchemaAt {
  const before = lookups.get(root);
  if (before !== undefined) return before;
  const walk = new Walk(root, resolveRef);
  const known = new Remembered<OpenApiSchema | undefined>();
  const lookup: SchemaAt = (path, key) =>
    known.get(key === undefined ? String(path) : `${path}\n${key}`, () => lookUp(walk, path, key));
  lookups.set(root, lookup);
  return lookup;
}

function lookUp(walk: Walk, path: FieldPath, key?: string): OpenApiSchema | undefined {
  const schema = attemptSync(() => (key === undefined ? walk.at(path) : walk.below(walk.at(path), key)));
  return schema instanceof Problem ? undefined : schema;
}

/** Checks a path without its value. `sample` is a value of the type that it will have; undefined if the type is unknown. */
export function checkPath(
  path: FieldPath,
  { value, isBytes }: { value?: JsonValue | undefined; isBytes?: boolean },
  root: OpenApiSchema,
  resolveRef: ResolveRef,
): void {
  const walk = new Walk(root, resolveRef);
  const schema = walk.at(path);
  assertBytes(schema, path, isBytes ?? value === undefined);
  if (value !== undefined) assertType(schema, value, path);
}

class Walk {
  readonly #root: OpenApiSchema;
  readonly #resolveRef: ResolveRef;
  readonly #kind: string;
  readonly #version: string | undefined;
  readonly #effort = { left: MAX_EFFORT };
  /** How many problems of a manifest are found. */
  #problems = 0;

  constructor(root: OpenApiSchema, resolveRef: ResolveRef) {
    this.#root = root;
    this.#resolveRef = resolveRef;
    const { group = "", version, kind } = this.resolve(root)["x-kubernetes-group-version-kind"]?.[0] ?? {};
    this.#kind = kind ?? "the object";
    this.#version = group === "" ? version : `${group}/${version}`;
  }

  /** The schema at a path, resolved. */
  at(path: FieldPath): OpenApiSchema {
    const { segments } = path;
    let [above, schema]: [OpenApiSchema, OpenApiSchema] = [ANYTHING, this.resolve(this.#root)];
    for (const [position, segment] of segments.entries()) {
      const here = path.upTo(position + 1);
      const isMap = /^metadata\.(annotations|labels)$/.test(here.toString());
      const parent = position > 0 ? String(path.upTo(position)) : this.#kind;
      const place = { path, at: String(here), parent, position, above };
      [above, schema] = [schema, isMap ? STRING_MAP : this.#step(schema, segment, place)];
    }
    return schema;
  }

  below(schema: OpenApiSchema, key: string): OpenApiSchema {
    return this.#step(schema, keySegment(key), { at: "", parent: "" });
  }

  /**
   * Throws if the field does not accept the value. `known` is the schema at a correct path. Messages name types and
   * rules, never a value or a key in it.
   */
  check({ path, value: sealed, isBytes = false }: PlannedField, known: OpenApiSchema | undefined): void {
    const schema = known ?? this.at(path);
    const value = sealed.reveal();
    assertBytes(schema, path, isBytes);
    assertType(schema, value, path);
    const broken = brokenRule(schema, value, this.#effort);
    if (broken !== undefined) {
      const fix = "correct it in its source, or name another key";
      throw new Problem("InvalidValue", { at: [String(path)], what: `the value ${broken}`, fix });
    }
    const wrong = attemptSync(() => this.checkWithin(schema, value));
    if (wrong === undefined) return;
    const why = wrong.reason === "InvalidValue" ? wrong.message : `does not match the schema of ${this.#kind}`;
    throw new Problem(wrong.reason, { at: [String(path)], what: `a part of the value ${why}` });
  }

  /** `at` is the path of the value, if messages may name it. */
  checkWithin(schema: OpenApiSchema, value: JsonValue, at?: string): void {
    if (typeof value !== "object" || value === null) return;
    const children: [Segment, JsonValue][] = Array.isArray(value)
      ? value.map((child, index) => [{ kind: "index", index }, child])
      : Object.entries(value).map(([key, child]) => [keySegment(key), child]);
    const check = ([segment, child]: [Segment, JsonValue]) => {
      const where = at === undefined ? undefined : below(at, segment);
      const schemaBelow = this.#step(schema, segment, { at: where ?? "", parent: at || this.#kind });
      // The API server treats null as a missing value.
      if (child === null && where !== undefined) return;
      assertType(schemaBelow, child, where ?? "", where === undefined);
      const broken = brokenRule(schemaBelow, child, this.#effort);
      if (broken !== undefined)
        throw new Problem("InvalidValue", where === undefined ? broken : { at: [where], what: `the value ${broken}` });
      this.checkWithin(schemaBelow, child, where);
    };
    // A message about a value names no part of it, so one is enough.
    if (at === undefined) children.forEach(check);
    else
      eachOf(children, (child) => {
        if (this.#problems < MAX_PROBLEMS) this.#counted(() => check(child));
      });
  }

  #counted(work: () => void): void {
    const problem = attemptSync(work);
    if (problem === undefined) return;
    this.#problems++;
    throw problem;
  }

  /** Follows $ref and merges allOf, so that a schema's own keys are complete. */
  resolve(schema: OpenApiSchema): OpenApiSchema {
    if (schema.$ref !== undefined) {
      const target = this.#resolveRef(schema.$ref);
      if (target === undefined) return ANYTHING;
      const found = this.resolve(target);
      // A shared type without fields, such as RawExtension, accepts any field; such a schema in a CRD accepts none.
      const isOpen = found.type === "object" && !found.properties && found.additionalProperties === undefined;
      return isOpen ? { ...found, "x-kubernetes-preserve-unknown-fields": true } : found;
    }
    const { allOf = [], ...own } = schema;
    const merged: OpenApiSchema = own;
    const parts = allOf.map((inner) => this.resolve(inner));
    for (const part of parts) {
      const properties = { ...part.properties, ...merged.properties };
      const required = [...(part.required ?? []), ...(merged.required ?? [])];
      Object.assign(merged, { ...part, ...merged });
      if (part.properties) merged.properties = properties;
      if (part.required) merged.required = required;
    }
    // Keep allOf: the rules of each part apply, not only the merged ones.
    return parts.length > 0 ? { ...merged, allOf: parts } : merged;
  }

  /** The schema of a segment, given the schema of its parent. */
  #step(schema: OpenApiSchema, segment: Segment, place: Place): OpenApiSchema {
    const types = typesOf(schema);
    const { at, parent, path = at } = place;
    if (segment.kind !== "key") {
      if (types.length > 0 && !types.includes("array")) {
        const what = `${parent} is ${spell(types)}, so it has no elements`;
        throw new Problem("TypeMismatch", { at: [String(path)], what });
      }
      const items = this.#known(schema, segment) ?? (schema === NO_FIELDS ? NO_FIELDS : ANYTHING);
      for (const { key } of segment.kind === "element" ? segment.conditions : []) {
        const named = this.#step(items, { kind: "key", key }, { at, parent: `${parent}[]` });
        if (isScalar(named)) continue;
        const what = `${plainWord(key)} is ${spell(typesOf(named))}, so it can't identify an element`;
        throw new Problem("TypeMismatch", { at: [String(path)], what });
      }
      return items;
    }
    const { key } = segment;
    if (types.length > 0 && !types.includes("object")) {
      const items = schema.items && this.resolve(schema.items);
      const keys = schema["x-kubernetes-list-map-keys"];
      const hint = types.includes("array") ? elementHint(place, key, items, keys) : dottedKeyHint(place);
      const what = `${parent} is ${spell(types)}, so it has no field ${plainWord(key)}${hint}`;
      throw new Problem("TypeMismatch", { at: [String(path)], what });
    }
    const known = this.#known(schema, segment);
    if (known !== undefined) return known;
    const { additionalProperties: others } = schema;
    if (others === true) return NO_FIELDS;
    if (typeof others === "object") return this.resolve(others);
    const isEmbedded = schema["x-kubernetes-embedded-resource"] && ["apiVersion", "kind", "metadata"].includes(key);
    const isOpen = schema["x-kubernetes-preserve-unknown-fields"] || isEmbedded;
    if (isOpen || (schema.type === undefined && schema.properties === undefined)) return ANYTHING;
    const what = unknownField(place, { kind: this.#kind, version: this.#version }, schema, key, this.#known);
    throw new Problem("UnknownField", { at: [String(path)], what });
  }

  /** The schema of a field that the schema names, or of the elements of a list. */
  readonly #known: Known = (schema, segment) => {
    const { properties = {} } = schema;
    const field = (key: string) => (Object.hasOwn(properties, key) ? properties[key] : undefined);
    const found = segment.kind === "key" ? field(segment.key) : itemsOf(schema);
    return found && this.resolve(found);
  };
}

/** Whether the field accepts a text, number or boolean. */
function isScalar(schema: OpenApiSchema): boolean {
  const types = typesOf(schema);
  return types.length === 0 || types.some((type) => type !== "object" && type !== "array");
}

/** The types that a resolved schema accepts. Empty: any. */
export function typesOf(schema: OpenApiSchema): OpenApiType[] {
  if (schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string") return ["integer", "string"];
  if (schema.type !== undefined) return [schema.type];
  const choices = (schema.oneOf ?? schema.anyOf ?? []).map(({ type }) => type);
  return choices.every((type) => type !== undefined) ? choices : [];
}

function typeOf(value: JsonValue): OpenApiType | "null" {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "bigint") return "integer";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as "string" | "boolean" | "object";
}

const words: Record<OpenApiType | "null", string> = {
  string: "a string",
  integer: "an integer",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  null: "null",
};

/** `a string`, `an integer or a string`. */
function spell(types: readonly (OpenApiType | "null")[]): string {
  return types.map((type) => words[type]).join(" or ");
}

export function fits(schema: OpenApiSchema, value: JsonValue): boolean {
  if (value === null && schema.nullable) return true;
  const types: readonly string[] = typesOf(schema);
  const actual = typeOf(value);
  return types.length === 0 || types.includes(actual) || (actual === "integer" && types.includes("number"));
}

function assertBytes({ format }: OpenApiSchema, path: FieldPath, isBytes: boolean): void {
  if (format !== "byte" || isBytes) return;
  const what = "the field is bytes in base64, but the value may be plain or base64";
  const fix = "set as: bytes if it is plain. If it is base64, also decode it: {{base64decode source.field}}";
  throw new Problem("TypeMismatch", { at: [String(path)], what, fix });
}

function assertType(schema: OpenApiSchema, value: JsonValue, path: FieldPath | string, isField = true): void {
  if (fits(schema, value)) return;
  const types = typesOf(schema);
  const [wanted] = types;
  const isScalar = value !== null && typeof value !== "object";
  const takesText = types.includes("string");
  const isText = typeof value === "string";
  const hint =
    isText && wanted === "object"
      ? (onlyByIndex(schema, path) ??
        "continue the path to a field in it, or, if the text is a JSON or YAML object, set as: json or as: yaml")
      : isText || (isScalar && takesText)
        ? `set as: ${conversions[wanted as OpenApiType]}`
        : value !== null && takesText
          ? "name one key or field in it, or convert it with json, yaml or join in a template"
          : undefined;
  const what = `the field is ${spell(types)}, the value is ${words[typeOf(value)]}`;
  throw new Problem("TypeMismatch", { at: [String(path)], what, fix: isField ? hint : undefined });
}

/** For an element whose path names all of its fields, so that no longer path can write one of them. */
function onlyByIndex({ properties = {} }: OpenApiSchema, path: FieldPath | string): string | undefined {
  if (typeof path === "string") return undefined;
  const leaf = path.segments.at(-1);
  const conditions = leaf?.kind === "element" ? leaf.conditions.map(({ key }) => key) : [];
  const [first] = conditions;
  if (first === undefined || !Object.keys(properties).every((key) => conditions.includes(key))) return undefined;
  return `name the element by its index, as in ${elementAt(path.upTo(path.segments.length - 1), `.${first}`)}`;
}

/** The `as` that converts a text to a type. */
const conversions: Record<OpenApiType, string> = {
  string: "string",
  integer: "integer",
  number: "number",
  boolean: "boolean",
  object: "json, or yaml",
  array: 'json, or yaml, or split it: {{split source.key ","}}',
};
