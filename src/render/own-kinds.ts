/** Checks objects of Inlay's own kinds against their CRDs, as the API server would, but finds every mistake. Pure. */
import compositionSchema from "../api/binding-composition-schema.json" with { type: "json" };
import grantSchema from "../api/secret-grant-schema.json" with { type: "json" };
import vaultConnectionSchema from "../api/vault-connection-schema.json" with { type: "json" };
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { attemptSync } from "../apimachinery/problem.ts";
import { missingFields, withDefaults, wrongChoices } from "../apimachinery/structural-schema.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { BINDING_SCHEMA } from "../composition/compile.ts";
import { checkManifest } from "../transform/schema-check.ts";
import { stepsIn, takeOut } from "./place.ts";

export interface Checked {
  /** What is wrong, each with its place before it. */
  readonly wrong: readonly string[];
  /** The object with its defaults and without what is wrong with it. Undefined if nothing can be said of it without that. */
  readonly corrected: JsonObject | undefined;
}

export const OWN_VERSION = "inlay.dev/v1alpha1";
const OWN_KINDS: Readonly<Record<string, OpenApiSchema>> = {
  SecretBinding: BINDING_SCHEMA,
  SecretGrant: grantSchema as unknown as OpenApiSchema,
  BindingComposition: compositionSchema as unknown as OpenApiSchema,
  VaultConnection: vaultConnectionSchema as unknown as OpenApiSchema,
};
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME_LENGTH: Readonly<Record<string, number>> = { BindingComposition: 63 };
/** Below these, a null means something. */
const FREE = new Set(["manifest", "map", "result", "fallbackValue"]);
/** At most so many mistakes of one object are reported. */
const MAX_MISTAKES = 100;

export const isOwn = ({ apiVersion }: JsonObject): boolean => String(apiVersion).startsWith("inlay.dev/");

/** Of an object that has a name. */
export function checkOwn(object: JsonObject, name: string): Checked {
  const [apiVersion, kind] = [object["apiVersion"], String(object["kind"])];
  if (apiVersion !== OWN_VERSION) return unknown(`apiVersion: it has to be ${OWN_VERSION}`);
  const schema = Object.hasOwn(OWN_KINDS, kind) ? OWN_KINDS[kind] : undefined;
  if (schema === undefined)
    return unknown(`kind: there is no such kind; ${suggestNames(OWN_VERSION, kind, Object.keys(OWN_KINDS))}`);
  const maxLength = MAX_NAME_LENGTH[kind] ?? 253;
  const isNamed = name.length <= maxLength && NAME.test(name);
  const wrongName = isNamed ? [] : [`metadata.name: it is not a DNS name of at most ${maxLength} characters`];
  const ofKind = [{ group: "inlay.dev", version: "v1alpha1", kind }];
  const { wrong, corrected } = checkSchema(object, { ...schema, "x-kubernetes-group-version-kind": ofKind });
  return { wrong: [...wrongName, ...wrong], corrected };
}

const unknown = (wrong: string): Checked => ({ wrong: [wrong], corrected: undefined });

function checkSchema(object: JsonObject, schema: OpenApiSchema): Checked {
  const filled = withDefaults(schema, object) as JsonObject;
  const draft = structuredClone(filled);
  const wrong: string[] = [];
  while (wrong.length < MAX_MISTAKES) {
    const problem = attemptSync(() => checkManifest(draft, schema, () => undefined));
    if (problem === undefined) break;
    // How a target's value gets another type does not help in a file.
    const message = problem.message.replace(/; (?:say as:|name a text in it).*/s, "");
    wrong.push(message);
    if (!takeOut(draft, stepsIn(message))) break;
  }
  const corrected = withDefaults(schema, draft) as JsonObject;
  const isWhole = [...incomplete(corrected, schema)].length === 0;
  return { wrong: [...wrong, ...incomplete(filled, schema)], corrected: isWhole ? corrected : undefined };
}

function* incomplete(object: JsonObject, schema: OpenApiSchema): Generator<string> {
  for (const path of missingFields(schema, object)) yield `${path}: it is missing`;
  for (const { path, rule } of wrongChoices(schema, object)) yield `${path}: ${rule}`;
  for (const path of nullsIn(object["spec"] ?? null, "spec")) yield `${path}: this element of the list is empty`;
}

function* nullsIn(value: JsonValue, path: string): Generator<string> {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries())
      if (each === null) yield `${path}[${at}]`;
      else yield* nullsIn(each, `${path}[${at}]`);
  } else if (isObject(value))
    for (const [key, each] of Object.entries(value)) if (!FREE.has(key)) yield* nullsIn(each, `${path}.${key}`);
}
