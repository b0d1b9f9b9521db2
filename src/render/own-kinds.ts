/** Checks objects of Inlay's own kinds against their CRDs, as the API server would, but finds every mistake. Pure. */
import ownRules from "../api/own-rules.json" with { type: "json" };
import { OWN_SCHEMAS } from "../api/own-schemas.ts";
import { brokenRules, type RuleTree } from "../apimachinery/cel.ts";
import { isObject } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  isSameKind,
  type JsonObject,
  type JsonValue,
  type KubeObject,
  type Resource,
} from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { allIn, attemptSync, type ProblemParts } from "../apimachinery/problem.ts";
import { OWN_RESOURCES } from "../apimachinery/resources.ts";
import { missingFields, valuesIn, withDefaults, wrongChoices } from "../apimachinery/structural-schema.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";
import { checkManifest } from "../transform/schema-check.ts";
import { removeAt, stepsOf } from "./place.ts";

export interface Checked {
  readonly wrong: readonly ProblemParts[];
  /** The object with defaults and without its mistakes. Undefined if it can't be checked further. */
  readonly corrected: JsonObject | undefined;
}

export const OWN_VERSION = "inlay.dev/v1alpha1";
export const OWN_KINDS = [...OWN_SCHEMAS.keys()];
const RULES = ownRules as Readonly<Record<string, RuleTree>>;
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME_LENGTH: Readonly<Record<string, number>> = { BindingComposition: 63 };
/** Below these fields, null is a value. */
const FREE = new Set(["manifest", "map", "result", "fallbackValue"]);

export const isOwn = ({ apiVersion }: JsonObject): boolean => String(apiVersion).startsWith("inlay.dev/");

/** The kind of an object that is Inlay's, in any version. */
export const ownResource = (object: Pick<KubeObject, "apiVersion" | "kind">): Resource | undefined =>
  OWN_RESOURCES.find((each) => isSameKind(object, { apiVersion: apiVersionOf(each), kind: each.kind }));

/** Checks an object that has a name. */
export function checkOwn(object: JsonObject, name: string): Checked {
  const [apiVersion, kind] = [object["apiVersion"], String(object["kind"])];
  if (apiVersion !== OWN_VERSION) return unknown("apiVersion", `must be ${OWN_VERSION}`);
  const schema = OWN_SCHEMAS.get(kind);
  if (schema === undefined) return unknown("kind", `unknown kind; ${suggestNames(OWN_VERSION, kind, OWN_KINDS)}`);
  const maxLength = MAX_NAME_LENGTH[kind] ?? 253;
  const isNamed = name.length <= maxLength && NAME.test(name);
  const wrongName = isNamed ? [] : [wrongAt("metadata.name", `must be a DNS name of at most ${maxLength} characters`)];
  const ofKind = [{ group: "inlay.dev", version: "v1alpha1", kind }];
  const { wrong, corrected, filled } = checkSchema(object, { ...schema, "x-kubernetes-group-version-kind": ofKind });
  // Both checks know some rules. The message of a rule says what to do.
  const rules = brokenRulesOf(kind, filled).filter((rule) => !wrong.some((each) => isBelow(each, rule)));
  const places = rules.map(placeIn);
  const others = wrong.filter((each) => !places.includes(placeIn(each)));
  return { wrong: [...wrongName, ...others, ...rules], corrected };
}

export const wrongAt = (place: string, what: string): ProblemParts => ({ at: [place], what });

/** The rules of the CRD that an object breaks. */
export const brokenRulesOf = (kind: string, object: JsonObject): ProblemParts[] =>
  [...brokenRules(RULES[kind] ?? {}, object)].map(({ path, message }) => wrongAt(path, message));

const placeIn = ({ at = [] }: ProblemParts): string => JSON.stringify(stepsOf(at));

/** Whether a mistake is deeper than the place of a rule, so that the rule may only be broken because of it. */
function isBelow(mistake: ProblemParts, rule: ProblemParts): boolean {
  const [inner, outer] = [stepsOf(mistake.at ?? []), stepsOf(rule.at ?? [])];
  return inner.length > outer.length && outer.every((step, at) => step === inner[at]);
}

const unknown = (place: string, what: string): Checked => ({ wrong: [wrongAt(place, what)], corrected: undefined });

function checkSchema(object: JsonObject, schema: OpenApiSchema): Checked & { filled: JsonObject } {
  const filled = withDefaults(schema, object) as JsonObject;
  const problem = attemptSync(() => checkManifest(filled, schema, () => undefined));
  const wrong: readonly ProblemParts[] = problem === undefined ? [] : allIn(problem);
  const draft = wrong.length === 0 ? filled : structuredClone(filled);
  for (const { at = [] } of wrong) removeAt(draft, stepsOf(at));
  const missing = [...incomplete(filled, schema)];
  if (wrong.length === 0) return { wrong: missing, corrected: missing.length === 0 ? filled : undefined, filled };
  const corrected = withDefaults(schema, draft) as JsonObject;
  const isWhole = [...incomplete(corrected, schema)].length === 0;
  return { wrong: [...wrong, ...missing], corrected: isWhole ? corrected : undefined, filled };
}

function* incomplete(object: JsonObject, schema: OpenApiSchema): Generator<ProblemParts> {
  const values = valuesIn(schema, object);
  for (const path of missingFields(values)) yield wrongAt(path, "missing; add it");
  for (const { path, rule } of wrongChoices(values)) yield wrongAt(path, rule);
  for (const path of nullsIn(object["spec"] ?? null, "spec")) yield wrongAt(path, "empty element of a list; remove it");
}

function* nullsIn(value: JsonValue, path: string): Generator<string> {
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries())
      if (each === null) yield `${path}[${at}]`;
      else yield* nullsIn(each, `${path}[${at}]`);
  } else if (isObject(value))
    for (const [key, each] of Object.entries(value)) if (!FREE.has(key)) yield* nullsIn(each, `${path}.${key}`);
}
