/**
 * A plan and the target's published schema come in; nothing goes out, or the Problem that the API server would answer
 * with, but without the value that its answer would quote. Pure.
 */
import { FieldPath, type Segment } from "../model/field-path.ts";
import type { JsonValue } from "../model/kube-object.ts";
import type { OpenApiSchema, OpenApiType, ResolveRef } from "../model/openapi.ts";
import type { Plan } from "../model/plan.ts";
import { Problem } from "../model/problem.ts";

const MAX_NAMES = 8;
const STRING_MAP: OpenApiSchema = { type: "object", additionalProperties: { type: "string" } };
/** A schema that takes anything. */
const ANYTHING: OpenApiSchema = {};

/**
 * Walks a kind's schema down each path of a plan. Throws Problem("UnknownField") with the names that there are, and
 * Problem("TypeMismatch") for a value, or a step of the path, of another type than the field's. What the schema leaves
 * open passes, and so do rules other than the type (pattern, length, CEL): the API server judges those.
 */
export function checkAgainstSchema(plan: Plan, root: OpenApiSchema, resolveRef: ResolveRef): void {
  const walk = new Walk(root, resolveRef);
  for (const { path, value } of plan.fields) walk.check(value.reveal(), path);
}

/** Whether the object that holds the path's leaf can't be without it. A schema that knows no such path demands nothing. */
export function isRequired(path: FieldPath, root: OpenApiSchema, resolveRef: ResolveRef): boolean {
  const walk = new Walk(root, resolveRef);
  const leaf = path.segments.at(-1);
  try {
    const parent = path.parent === undefined ? walk.resolve(root) : walk.at(path.parent);
    return leaf?.kind === "key" && (parent.required?.includes(leaf.key) ?? false);
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}

class Walk {
  readonly #root: OpenApiSchema;
  readonly #resolveRef: ResolveRef;
  readonly #kind: string;

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
      return this.#step(schema, here);
    }, root);
  }

  /** Throws unless the field at the path takes the value. Messages name types, never a value nor a key within one. */
  check(value: JsonValue, path: FieldPath): void {
    const schema = this.at(path);
    for (let parent = path.parent; parent !== undefined; parent = parent.parent) this.#assertGranular(parent, path);
    assertType(schema, value, path);
    try {
      this.#checkWithin(schema, value, path);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      throw new Problem(error.reason, `${path}: something within the value is not as ${this.#kind} has it`);
    }
  }

  /** An apply of one field would take the others out of an object that is written whole. */
  #assertGranular(parent: FieldPath, path: FieldPath): void {
    if (this.at(parent)["x-kubernetes-map-type"] !== "atomic") return;
    throw new Problem(
      "TypeMismatch",
      `${path}: ${this.#kind} has ${parent} written as a whole, so one field of it would take the place of all others; write ${parent} itself, from a field of an object`,
    );
  }

  #checkWithin(schema: OpenApiSchema, value: JsonValue, path: FieldPath): void {
    if (typeof value !== "object" || value === null) return;
    const children: [Segment, JsonValue][] = Array.isArray(value)
      ? value.map((child, index) => [{ kind: "index", index }, child])
      : Object.entries(value).map(([key, child]) => [{ kind: "key", key }, child]);
    for (const [segment, child] of children) {
      const below = new FieldPath([...path.segments, segment]);
      const schemaBelow = this.#step(schema, below);
      assertType(schemaBelow, child, below);
      this.#checkWithin(schemaBelow, child, below);
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
    for (const part of allOf.map((inner) => this.resolve(inner))) {
      const properties = { ...part.properties, ...merged.properties };
      const required = [...(part.required ?? []), ...(merged.required ?? [])];
      Object.assign(merged, { ...part, ...merged });
      if (part.properties) merged.properties = properties;
      if (part.required) merged.required = required;
    }
    return merged;
  }

  /** The schema of a path's last segment, given that of its parent. */
  #step(schema: OpenApiSchema, path: FieldPath): OpenApiSchema {
    const segment = path.segments.at(-1) as Segment;
    const parent = path.parent?.toString() ?? this.#kind;
    const types = typesOf(schema);
    if (segment.kind !== "key") {
      if (types.length > 0 && !types.includes("array")) {
        throw new Problem("TypeMismatch", `${path}: ${parent} is ${spell(types)}, so it has no elements`);
      }
      return schema.items === undefined ? ANYTHING : this.resolve(schema.items);
    }
    const { key } = segment;
    if (types.length > 0 && !types.includes("object")) {
      const hint = types.includes("array") ? `; an element of it is ${parent}[0] or ${parent}[name=web]` : "";
      throw new Problem("TypeMismatch", `${path}: ${parent} is ${spell(types)}, so it has no field ${key}${hint}`);
    }
    const { properties = {}, additionalProperties: others } = schema;
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known !== undefined) return this.resolve(known);
    if (typeof others === "object") return this.resolve(others);
    const isEmbedded = schema["x-kubernetes-embedded-resource"] && ["apiVersion", "kind", "metadata"].includes(key);
    const isOpen = others === true || schema["x-kubernetes-preserve-unknown-fields"] || isEmbedded;
    if (isOpen || (schema.type === undefined && schema.properties === undefined)) return ANYTHING;
    throw new Problem(
      "UnknownField",
      `${path}: ${this.#kind} has no such field; ${offer(parent, key, Object.keys(properties))}`,
    );
  }
}

/** The types that a resolved schema takes; none means any. */
function typesOf(schema: OpenApiSchema): OpenApiType[] {
  if (schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string") return ["integer", "string"];
  if (schema.type !== undefined) return [schema.type];
  const choices = (schema.oneOf ?? schema.anyOf ?? []).map(({ type }) => type);
  return choices.every((type) => type !== undefined) ? choices : [];
}

function typeOf(value: JsonValue): OpenApiType | "null" {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
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

function assertType(schema: OpenApiSchema, value: JsonValue, path: FieldPath): void {
  if (value === null && schema.nullable) return;
  const types: readonly string[] = typesOf(schema);
  const actual = typeOf(value);
  const fits = types.includes(actual) || (actual === "integer" && types.includes("number"));
  if (types.length > 0 && !fits) {
    throw new Problem("TypeMismatch", `${path}: the field is ${spell(typesOf(schema))}, the value is ${words[actual]}`);
  }
  // Text that happens to be base64 would arrive as other bytes: which of the two is meant can't be told.
  if (schema.format === "byte") {
    throw new Problem("TypeMismatch", `${path}: the field is bytes in base64, which can't be bound yet`);
  }
}

/** The fields that there are, the likeliest first. */
function offer(parent: string, key: string, names: readonly string[]): string {
  if (names.length === 0) return `${parent} has no fields`;
  const byDistance = names.map((name) => [distance(key.toLowerCase(), name.toLowerCase()), name] as const);
  byDistance.sort(([p], [q]) => p - q);
  const [nearest] = byDistance;
  const listed = byDistance.slice(0, MAX_NAMES).map(([, name]) => name);
  const guess = nearest !== undefined && nearest[0] <= 2 ? `did you mean ${nearest[1]}? ` : "";
  return `${guess}${parent} has ${listed.join(", ")}${names.length > MAX_NAMES ? ", and others" : ""}`;
}

/** How many letters must be added, removed or changed to make one text the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...from].entries()) {
    row = row.reduce<number[]>((next, above, column) => {
      if (column === 0) return [line + 1];
      const changed = (row[column - 1] as number) + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(changed, above + 1, (next[column - 1] as number) + 1));
      return next;
    }, []);
  }
  return row.at(-1) as number;
}
