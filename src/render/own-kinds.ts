/** Checks objects of Inlay's own kinds against their CRDs, as the API server would, but finds every mistake. Pure. */
import compositionSchema from "../api/binding-composition-schema.json" with { type: "json" };
import ownRules from "../api/own-rules.json" with { type: "json" };
import grantSchema from "../api/secret-grant-schema.json" with { type: "json" };
import vaultConnectionSchema from "../api/vault-connection-schema.json" with { type: "json" };
import { brokenRules, type RuleTree } from "../apimachinery/cel.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { attemptSync } from "../apimachinery/problem.ts";
import { missingFields, withDefaults, wrongChoices } from "../apimachinery/structural-schema.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { BINDING_SCHEMA } from "../composition/compile.ts";
import { checkManifest } from "../transform/schema-check.ts";
import { removeAt, stepsIn } from "./place.ts";

export interface Checked {
  /** The mistakes, each beginning with its place. */
  readonly wrong: readonly string[];
  /** The object with defaults and without its mistakes. Undefined if it can't be checked further. */
  readonly corrected: JsonObject | undefined;
}

export const OWN_VERSION = "inlay.dev/v1alpha1";
const SCHEMAS: Readonly<Record<string, OpenApiSchema>> = {
  SecretBinding: BINDING_SCHEMA,
  SecretGrant: grantSchema as unknown as OpenApiSchema,
  BindingComposition: compositionSchema as unknown as OpenApiSchema,
  VaultConnection: vaultConnectionSchema as unknown as OpenApiSchema,
};
export const OWN_KINDS = Object.keys(SCHEMAS);
const RULES = ownRules as Readonly<Record<string, RuleTree>>;
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME_LENGTH: Readonly<Record<string, number>> = { BindingComposition: 63 };
/** Below these fields, null is a value. */
const FREE = new Set(["manifest", "map", "result", "fallbackValue"]);
/** The most mistakes that are reported for one object. */
const MAX_MISTAKES = 100;

export const isOwn = ({ apiVersion }: JsonObject): boolean => String(apiVersion).startsWith("inlay.dev/");

/** Checks an object that has a name. */
export function checkOwn(object: JsonObject, name: string): Checked {
  const [apiVersion, kind] = [object["apiVersion"], String(object["kind"])];
  if (apiVersion !== OWN_VERSION) return unknown(`apiVersion: must be ${OWN_VERSION}`);
  const schema = Object.hasOwn(SCHEMAS, kind) ? SCHEMAS[kind] : undefined;
  if (schema === undefined) return unknown(`kind: unknown kind; ${suggestNames(OWN_VERSION, kind, OWN_KINDS)}`);
  const maxLength = MAX_NAME_LENGTH[kind] ?? 253;
  const isNamed = name.length <= maxLength && NAME.test(name);
  const wrongName = isNamed ? [] : [`metadata.name: must be a DNS name of at most ${maxLength} characters`];
  const ofKind = [{ group: "inlay.dev", version: "v1alpha1", kind }];
  const { wrong, corrected, filled } = checkSchema(object, { ...schema, "x-kubernetes-group-version-kind": ofKind });
  // Both checks know some rules. The message of a rule says what to do.
  const rules = brokenRulesOf(kind, filled).filter((rule) => !wrong.some((each) => isBelow(each, rule)));
  const places = rules.map((message) => placeIn(message));
  const others = wrong.filter((message) => !places.includes(placeIn(message)));
  return { wrong: [...wrongName, ...others, ...rules], corrected };
}

/** The rules of the CRD that an object breaks, each beginning with its place. */
export const brokenRulesOf = (kind: string, object: JsonObject): string[] =>
  [...brokenRules(RULES[kind] ?? {}, object)].map(({ path, message }) => `${path}: ${message}`);

const placeIn = (message: string): string => JSON.stringify(stepsIn(message));

/** Whether a mistake is deeper than the place of a rule, so that the rule may only be broken because of it. */
function isBelow(mistake: string, rule: string): boolean {
  const [inner, outer] = [stepsIn(mistake), stepsIn(rule)];
  return inner.length > outer.length && outer.every((step, at) => step === inner[at]);
}

const unknown = (wrong: string): Checked => ({ wrong: [wrong], corrected: undefined });

function checkSchema(object: JsonObject, schema: OpenApiSchema): Checked & { filled: JsonObject } {
  const filled = withDefaults(schema, object) as JsonObject;
  let draft = filled;
  const wrong: string[] = [];
  while (wrong.length < MAX_MISTAKES) {
    const problem = attemptSync(() => checkManifest(draft, schema, () => undefined));
    if (problem === undefined) break;
    // The advice to set `as` on a target does not apply to a file.
    const message = problem.message.replace(/; (?:(?:say|set) as:|name a (?:text|string) in it).*/s, "");
    wrong.push(message);
    if (draft === filled) draft = structuredClone(filled);
    if (!removeAt(draft, stepsIn(message))) break;
  }
  const missing = [...incomplete(filled, schema)];
  if (wrong.length === 0) return { wrong: missing, corrected: missing.length === 0 ? filled : undefined, filled };
  const corrected = withDefaults(schema, draft) as JsonObject;
  const isWhole = [...incomplete(corrected, schema)].length === 0;
  return { wrong: [...wrong, ...missing], corrected: isWhole ? corrected : undefined, filled };
}

function* incomplete(object: JsonObject, schema: OpenApiSchema): Generator<string> {
  for (const path of missingFields(schema, object)) yield `${path}: missing; add it`;
  for (const { path, rule } of wrongChoices(schema, object)) yield `${path}: ${rule}`;
  for (const path of nullsIn(object["spec"] ?? null, "spec")) yield `${path}: empty element of a list; remove it`;
}

function* nullsIn(value: JsonValue, path: string): Generator<string> {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries())
      if (each === null) yield `${path}[${at}]`;
      else yield* nullsIn(each, `${path}[${at}]`);
  } else if (isObject(value))
    for (const [key, each] of Object.entries(value)) if (!FREE.has(key)) yield* nullsIn(each, `${path}.${key}`);
}
