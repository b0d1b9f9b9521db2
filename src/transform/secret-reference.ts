/** Finds the field beside a path that takes a reference to a Secret in place of its value, if the schema has one. Pure. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import type { SchemaAt } from "./convert.ts";

/** What stands behind a field's own name: passwordSecretRef, configFrom. */
const SUFFIXES = "secretref secretkeyref secretname secretkeyselector fromsecret secret ref from".split(" ");
/** Beside a field that is only called value, these are for it. */
const FOR_VALUE = ["valuefrom", "secretkeyref", "secretref", "fromsecret"];
/** Beside credentials, these are for all of them. */
const FOR_CREDENTIALS =
  /^(existing|credentials?|auth)secret(ref|name|keyref)?$|^secretref$|^secretname$|^(credentials?|auth)ref$/;
const PATH_LISTS = ["valuefrom", "valuesfrom"];
const IS_CREDENTIAL = /^(user(name)?|login|pass(word|wd|phrase)?|token|(api|access|secret|secretaccess)key(id)?)$/;

/** As `spec.auth.passwordSecretRef`. Nothing for a field that can't be left out: what is beside it is for another. */
export function secretReferenceFor(path: FieldPath, schemaAt: SchemaAt): string | undefined {
  for (let depth = path.segments.length; depth > 0; depth--) {
    const segment = path.segments[depth - 1];
    const parent = path.upTo(depth - 1);
    const { properties = {}, required = [] } = schemaAt(parent) ?? {};
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

/** What stands behind one field's name where another is named after it. */
function suffixOf(key: string, name: string): string | undefined {
  return SUFFIXES.find((each) => plain(name) === plain(key) + each);
}

function isBeside(key: string, name: string): boolean {
  if (plain(key) === "value") return FOR_VALUE.includes(plain(name));
  return IS_CREDENTIAL.test(plain(key)) && FOR_CREDENTIALS.test(plain(name));
}

/**
 * Whether it speaks of a Secret: by its name, its description, or what is in it. A text called clientSecret beside client is
 * a secret, and no reference.
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

/** Whether it is a list of which each element says for which field it is, and takes it from a Secret: Grafana's valuesFrom. */
function takesPaths(at: FieldPath, schemaAt: SchemaAt): boolean {
  const from = schemaAt(elementOf(at), "targetPath") && schemaAt(elementOf(at).with({ kind: "key", key: "valueFrom" }));
  return from?.properties?.["secretKeyRef"] !== undefined;
}

const elementOf = (list: FieldPath) => list.with({ kind: "index", index: 0 });

/** In what may come from a Secret or elsewhere, the part that is the Secret. */
function deepest({ properties = {} }: OpenApiSchema, at: FieldPath): FieldPath {
  const inner = ["secretKeyRef", "secretRef"].find((key) => Object.hasOwn(properties, key));
  return inner === undefined ? at : at.with({ kind: "key", key: inner });
}

/** accessKeyID, access_key_id and accesskeyid are one name. */
const plain = (name: string) => name.replace(/[-_]/g, "").toLowerCase();
