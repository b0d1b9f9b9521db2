/**
 * Finds the field next to a path that accepts a reference to a Secret instead of the value, if the schema has one.
 * Pure.
 */
import type { FieldPath } from "../apimachinery/field-path.ts";
import { remembered } from "../apimachinery/newest.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import type { SchemaAt } from "./convert.ts";

/** Suffixes after a field's own name: passwordSecretRef, configFrom. */
const SUFFIXES = "secretref secretkeyref secretname secretkeyselector fromsecret secret ref from".split(" ");
/** Names for a reference next to a field called `value`. */
const FOR_VALUE = ["valuefrom", "secretkeyref", "secretref", "fromsecret"];
/** Names for one reference for all credentials. */
const FOR_CREDENTIALS =
  /^(existing|credentials?|auth)secret(ref|name|keyref)?$|^secretref$|^secretname$|^(credentials?|auth)ref$/;
const PATH_LISTS = ["valuefrom", "valuesfrom"];
const IS_CREDENTIAL = /^(user(name)?|login|pass(word|wd|phrase)?|token|(api|access|secret|secretaccess)key(id)?)$/;

/** The levels of a path that are searched: the work grows with their square. */
const MAX_LEVELS = 16;

/** By the lookup in a schema. */
const answers = new WeakMap<SchemaAt, Map<string, string | undefined>>();

/**
 * A path such as `spec.auth.passwordSecretRef`. Undefined for a required field: a reference next to it is for another
 * field.
 */
export function secretReferenceFor(path: FieldPath, schemaAt: SchemaAt): string | undefined {
  const known = answers.get(schemaAt) ?? new Map<string, string | undefined>();
  answers.set(schemaAt, known);
  return remembered(known, String(path), () => find(path, schemaAt));
}

function find(path: FieldPath, schemaAt: SchemaAt): string | undefined {
  const parents: OpenApiSchema[] = [];
  for (let depth = 0; depth < Math.min(path.segments.length, MAX_LEVELS); depth++) {
    const schema = schemaAt(path.upTo(depth));
    if (schema === undefined) break;
    parents.push(schema);
  }
  for (let depth = parents.length; depth > 0; depth--) {
    const segment = path.segments[depth - 1];
    const parent = path.upTo(depth - 1);
    const { properties = {}, required = [] } = parents[depth - 1] ?? {};
    if (segment?.kind !== "key" || required.includes(segment.key)) continue;
    const isLeaf = depth === path.segments.length;
    for (const name of Object.keys(properties)) {
      const { key } = segment;
      const isFor = suffixOf(key, name) !== undefined || (isLeaf && isBeside(key, name));
      if (name === key || !(isFor || PATH_LISTS.includes(plain(name)))) continue;
      const at = parent.with({ kind: "key", key: name });
      const schema = schemaAt(at) ?? {};
      if (isFor ? isReference(key, name, schema, at, schemaAt) : takesPaths(at, schemaAt))
        return String(deepest(schema, at));
    }
  }
  return undefined;
}

/** The suffix, if a name consists of the field's name and a known suffix. */
function suffixOf(key: string, name: string): string | undefined {
  return SUFFIXES.find((each) => plain(name) === plain(key) + each);
}

function isBeside(key: string, name: string): boolean {
  if (plain(key) === "value") return FOR_VALUE.includes(plain(name));
  return IS_CREDENTIAL.test(plain(key)) && FOR_CREDENTIALS.test(plain(name));
}

/**
 * Whether the field refers to a Secret: by its name, its description, or its fields. A text `clientSecret` next to
 * `client` is a secret, not a reference.
 */
function isReference(key: string, name: string, schema: OpenApiSchema, at: FieldPath, schemaAt: SchemaAt): boolean {
  if (suffixOf(key, name) === "secret" && schema.properties === undefined) return false;
  const isSecret = /secret/i;
  if (isSecret.test(name) || isSecret.test(schema.description ?? "")) return true;
  const inner = schema.items === undefined ? at : elementOf(at);
  return Object.keys(schemaAt(inner)?.properties ?? {}).some(
    (each) => isSecret.test(each) || (each === "kind" && schemaAt(inner, each)?.enum?.includes("Secret") === true),
  );
}

/**
 * Whether it is a list whose elements name a target field and take its value from a Secret, such as Grafana's
 * valuesFrom.
 */
function takesPaths(at: FieldPath, schemaAt: SchemaAt): boolean {
  const from = schemaAt(elementOf(at), "targetPath") && schemaAt(elementOf(at).with({ kind: "key", key: "valueFrom" }));
  return from?.properties?.["secretKeyRef"] !== undefined;
}

const elementOf = (list: FieldPath) => list.with({ kind: "index", index: 0 });

/** If a reference can use a Secret or another source, the path of its Secret. */
function deepest({ properties = {} }: OpenApiSchema, at: FieldPath): FieldPath {
  const inner = ["secretKeyRef", "secretRef"].find((key) => Object.hasOwn(properties, key));
  return inner === undefined ? at : at.with({ kind: "key", key: inner });
}

/** accessKeyID, access_key_id and accesskeyid are equal names. */
const plain = (name: string) => name.replace(/[-_]/g, "").toLowerCase();
