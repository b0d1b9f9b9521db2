/** Checks a plan against the target's schema as the API server would, but quotes no value. Pure. */
import { FieldPath, type Segment } from "../apimachinery/field-path.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema, OpenApiType, ResolveRef } from "../apimachinery/openapi.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { assertNotSpelledOut } from "./managed-fields-keys.ts";
import type { Plan, PlannedField } from "./plan-types.ts";
import { brokenRule } from "./schema-rules.ts";

const STRING_MAP: OpenApiSchema = { type: "object", additionalProperties: { type: "string" } };
const ANYTHING: OpenApiSchema = {};
/** What the patterns of a schema may cost for one target, in instructions times characters: some 10 ms, and 50 at worst. */
const MAX_EFFORT = 1_000_000;

/**
 * Walks a kind's schema down each path of a plan. Throws Problem("UnknownField") with the names that there are,
 * Problem("TypeMismatch") for a value, or a step of the path, of another type than the field's, and
 * Problem("InvalidValue") with the rule that a value breaks, and what `assertNotSpelledOut` throws. What the schema leaves
 * open passes, and so do rules that speak of more than one field (required, oneOf, CEL): the API server judges those.
 */
export function checkAgainstSchema(plan: Plan, root: OpenApiSchema, resolveRef: ResolveRef): void {
  const walk = new Walk(root, resolveRef);
  const schemaAt = schemaIn(root, resolveRef);
  for (const field of plan.fields) {
    walk.check(field);
    assertNotSpelledOut(field, schemaAt);
  }
}

/** The same for a manifest, but for its metadata. All may read what is in it, so messages name every place. */
export function checkManifest(manifest: JsonObject, root: OpenApiSchema, resolveRef: ResolveRef): void {
  const { metadata: _, ...rest } = manifest;
  const walk = new Walk(root, resolveRef);
  walk.checkWithin(walk.resolve(root), rest, "");
}

/** Finds what a kind's schema has at a path, or at a key below it; undefined for a path that the check refuses. */
export function schemaIn(root: OpenApiSchema, resolveRef: ResolveRef) {
  const walk = new Walk(root, resolveRef);
  return (path: FieldPath, key?: string): OpenApiSchema | undefined => {
    const schema = attemptSync(() => (key === undefined ? walk.at(path) : walk.below(walk.at(path), key)));
    return schema instanceof Problem ? undefined : schema;
  };
}

class Walk {
  readonly #root: OpenApiSchema;
  readonly #resolveRef: ResolveRef;
  readonly #kind: string;
  readonly #effort = { left: MAX_EFFORT };

  constructor(root: OpenApiSchema, resolveRef: ResolveRef) {
    this.#root = root;
    this.#resolveRef = resolveRef;
    this.#kind = this.resolve(root)["x-kubernetes-group-version-kind"]?.[0]?.kind ?? "the object";
  }

  /** The schema of what stands at a path, resolved. */
  at(path: FieldPath): OpenApiSchema {
    const root = this.resolve(this.#root);
    return path.segments.reduce((schema, _, position) => {
      const here = new FieldPath(path.segments.slice(0, position + 1));
      if (/^metadata\.(annotations|labels)$/.test(here.toString())) return STRING_MAP;
      return this.#step(schema, here.segments.at(-1) as Segment, String(here), here.parent?.toString() ?? this.#kind);
    }, root);
  }

  below(schema: OpenApiSchema, key: string): OpenApiSchema {
    return this.#step(schema, { kind: "key", key }, "", "");
  }

  /** Throws unless the field at the path takes the value. Messages name types and rules, never a value nor a key in it. */
  check({ path, value: sealed, isBytes = false }: PlannedField): void {
    const schema = this.at(path);
    const value = sealed.reveal();
    // The elements of a map list are written one by one. In any other list, nothing is.
    const isWhole = (list: FieldPath) => this.at(list)["x-kubernetes-list-type"] !== "map";
    const whole = path.segments.findIndex((segment, n) => segment.kind !== "key" && isWhole(path.upTo(n)));
    for (let parent = path.parent; parent !== undefined; parent = parent.parent) {
      if (whole < 0 || parent.segments.length < whole) this.#assertGranular(parent, path);
    }
    if (schema.format === "byte" && !isBytes) {
      const message = `${path}: the field is bytes in base64, and the value may be plain or base64 already; say as: bytes where it is plain, and decode it where it is not: {{base64decode source.field}}`;
      throw new Problem("TypeMismatch", message);
    }
    assertType(schema, value, path);
    const broken = brokenRule(schema, value, this.#effort);
    if (broken !== undefined) throw new Problem("InvalidValue", `${path}: the value ${broken}`);
    const wrong = attemptSync(() => this.checkWithin(schema, value));
    if (wrong === undefined) return;
    const why = wrong.reason === "InvalidValue" ? wrong.message : `is not as ${this.#kind} has it`;
    throw new Problem(wrong.reason, `${path}: something within the value ${why}`);
  }

  /** An apply of one field would take the others out of an object that is written whole. */
  #assertGranular(parent: FieldPath, path: FieldPath): void {
    if (this.at(parent)["x-kubernetes-map-type"] !== "atomic") return;
    const message = `${path}: ${this.#kind} has ${parent} written as a whole, so one field of it would take the place of all others; write ${parent} itself, from a field of an object`;
    throw new Problem("TypeMismatch", message);
  }

  /** `at` says where the value stands, if messages may tell. */
  checkWithin(schema: OpenApiSchema, value: JsonValue, at?: string): void {
    if (typeof value !== "object" || value === null) return;
    const children: [Segment, JsonValue][] = Array.isArray(value)
      ? value.map((child, index) => [{ kind: "index", index }, child])
      : Object.entries(value).map(([key, child]) => [{ kind: "key", key }, child]);
    for (const [segment, child] of children) {
      const where = at === undefined ? undefined : below(at, segment);
      const schemaBelow = this.#step(schema, segment, where ?? "", at || this.#kind);
      // The API server takes null for what is not there.
      if (child === null && where !== undefined) continue;
      assertType(schemaBelow, child, where ?? "", where === undefined);
      const broken = brokenRule(schemaBelow, child, this.#effort);
      if (broken !== undefined) {
        throw new Problem("InvalidValue", where === undefined ? broken : `${where}: the value ${broken}`);
      }
      this.checkWithin(schemaBelow, child, where);
    }
  }

  /** Follows $ref and folds allOf in, so that a schema's own keys say all of it. */
  resolve(schema: OpenApiSchema): OpenApiSchema {
    if (schema.$ref !== undefined) {
      const target = this.#resolveRef(schema.$ref);
      if (target === undefined) return ANYTHING;
      const found = this.resolve(target);
      // A shared type without fields, such as RawExtension, is one that takes any; a CRD's own is one that takes none.
      const isOpen = found.type === "object" && !found.properties && found.additionalProperties === undefined;
      return isOpen ? { ...found, additionalProperties: true } : found;
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
    // Each part's rules hold, not only those of one.
    return parts.length > 0 ? { ...merged, allOf: parts } : merged;
  }

  /** How an element of a list may be named: by the keys of a map list, by its name, or by its place. */
  #example(schema: OpenApiSchema, list: string): string {
    const items = schema.items === undefined ? ANYTHING : this.resolve(schema.items);
    const known = items.properties === undefined || Object.hasOwn(items.properties, "name");
    const keys = schema["x-kubernetes-list-map-keys"] ?? (known ? ["name"] : []);
    return keys.length === 0 ? `${list}[0]` : `${list}[${keys.map((key) => `${key}=...`).join(",")}]`;
  }

  /** The schema of a path's last segment, given that of its parent. `path` and `parent` are for messages. */
  #step(schema: OpenApiSchema, segment: Segment, path: string, parent: string): OpenApiSchema {
    const types = typesOf(schema);
    if (segment.kind !== "key") {
      if (types.length > 0 && !types.includes("array")) {
        throw new Problem("TypeMismatch", `${path}: ${parent} is ${spell(types)}, so it has no elements`);
      }
      const items = schema.items === undefined ? ANYTHING : this.resolve(schema.items);
      for (const { key } of segment.kind === "element" ? segment.conditions : []) {
        const named = this.#step(items, { kind: "key", key }, path, `${parent}[]`);
        if (!isScalar(named))
          throw new Problem("TypeMismatch", `${path}: ${key} is ${spell(typesOf(named))}, and names no element`);
      }
      return items;
    }
    const { key } = segment;
    if (types.length > 0 && !types.includes("object")) {
      const hint = types.includes("array") ? `; name the element, as in ${this.#example(schema, parent)}` : "";
      throw new Problem("TypeMismatch", `${path}: ${parent} is ${spell(types)}, so it has no field ${key}${hint}`);
    }
    const { properties = {}, additionalProperties: others } = schema;
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known !== undefined) return this.resolve(known);
    if (typeof others === "object") return this.resolve(others);
    const isEmbedded = schema["x-kubernetes-embedded-resource"] && ["apiVersion", "kind", "metadata"].includes(key);
    const isOpen = others === true || schema["x-kubernetes-preserve-unknown-fields"] || isEmbedded;
    if (isOpen || (schema.type === undefined && schema.properties === undefined)) return ANYTHING;
    const message = `${path}: ${this.#kind} has no such field; ${suggestNames(parent, key, Object.keys(properties))}`;
    throw new Problem("UnknownField", message);
  }
}

/** Whether a field of that schema may be a text, number, or true or false. */
function isScalar(schema: OpenApiSchema): boolean {
  const types = typesOf(schema);
  return types.length === 0 || types.some((type) => type !== "object" && type !== "array");
}

/** The types that a resolved schema takes; none means any. */
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

/** What stands at a path, below which a key or a place comes; a manifest may have keys that no path can name. */
function below(at: string, segment: Segment): string {
  if (segment.kind !== "key") return `${at}[${segment.kind === "index" ? segment.index : ""}]`;
  if (!/^[\w-]+$/.test(segment.key)) return `${at}[${JSON.stringify(segment.key)}]`;
  return at === "" ? segment.key : `${at}.${segment.key}`;
}

function assertType(schema: OpenApiSchema, value: JsonValue, path: FieldPath | string, isField = true): void {
  if (fits(schema, value)) return;
  const types = typesOf(schema);
  const [wanted] = types;
  const isScalar = value !== null && typeof value !== "object";
  const takesText = types.includes("string");
  const hint =
    typeof value === "string" || (isScalar && takesText)
      ? `; say as: ${conversions[wanted as OpenApiType]}`
      : value !== null && takesText
        ? "; name a text in it, or write it with json, yaml or join in a template"
        : "";
  const message = `${path}: the field is ${spell(types)}, the value is ${words[typeOf(value)]}${isField ? hint : ""}`;
  throw new Problem("TypeMismatch", message);
}

/** By which `as` a text becomes a value of a type. */
const conversions: Record<OpenApiType, string> = {
  string: "string",
  integer: "integer",
  number: "number",
  boolean: "boolean",
  object: "json, or yaml",
  array: 'json, or yaml, or split it: {{split source.key ","}}',
};
