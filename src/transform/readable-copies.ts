/** Finds fields in which more users can read a value of a Secret than in the Secret, and says what to do. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import type { Installation } from "../api/installation.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { getOrInsert, Remembered } from "../apimachinery/maps.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { Recipe } from "./plan.ts";
import type { ReadableCopies } from "./plan-types.ts";
import type { SchemaAt } from "./schema-check.ts";

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
const answers = new WeakMap<SchemaAt, Remembered<string | undefined>>();

/**
 * A path such as `spec.auth.passwordSecretRef`. Undefined for a required field: a reference next to it is for another
 * field.
 */
export function secretReferenceFor(path: FieldPath, schemaAt: SchemaAt): string | undefined {
  const known = getOrInsert(answers, schemaAt, () => new Remembered());
  return known.get(String(path), () => find(path, schemaAt));
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

const MAX_PATHS = 3;

/**
 * RBAC permits reads by kind and namespace. So only a Secret in the same namespace protects a value as well as its
 * source does. Undefined if there are no such fields, or if the binding acknowledges them. `secrets`: the namespace of
 * each source with secret data, by its name.
 */
export function readableCopies(
  binding: SecretBinding,
  secrets: ReadonlyMap<string, string>,
  recipes: readonly Pick<Recipe, "path" | "references">[],
  { resource, namespace }: Pick<ObjectRef, "resource" | "namespace">,
  schemaAt: SchemaAt = () => undefined,
): ReadableCopies | undefined {
  if (binding.spec.acknowledge?.includes("ReadableCopies")) return undefined;
  const isSecret = resource.group === "" && resource.plural === "secrets";
  const isReadable = ({ references }: Pick<Recipe, "references">) =>
    references.some(({ source }) => secrets.has(source) && !(isSecret && secrets.get(source) === namespace));
  const paths = recipes.filter(isReadable).map(({ path }) => path);
  if (paths.length === 0) return undefined;
  const reader = isSecret ? "the copy in its namespace" : `the ${resource.kind}`;
  const instead = paths.flatMap((path) => {
    const reference = secretReferenceFor(path, schemaAt);
    return reference === undefined ? [] : [`set ${reference} to a reference to a Secret instead of writing ${path}`];
  });
  const hint = instead.length === 0 ? "" : ` (${firstOf(instead, MAX_PATHS)})`;
  const note = `all users who may read ${reader} can read values of Secrets at ${firstOf(paths.map(String), MAX_PATHS)}${hint}; if you intend this, set spec.acknowledge: [ReadableCopies]`;
  return { paths: paths.map(String), note };
}

/** Throws Problem if the installation requires the acknowledgement that the binding lacks. */
export function assertAcknowledged(
  binding: SecretBinding,
  copies: ReadableCopies | undefined,
  installation: Pick<Installation, "requires">,
): void {
  if (copies === undefined || !installation.requires("ReadableCopies")) return;
  const { namespace, name } = binding.metadata;
  const patch = `kubectl patch secretbinding ${name} -n ${namespace} --type=merge -p '{"spec":{"acknowledge":["ReadableCopies"]}}'`;
  const what = `${copies.note}. The installation requires this acknowledgement before anything is written`;
  throw new Problem("NotAcknowledged", { what, fix: "set it", command: patch });
}
