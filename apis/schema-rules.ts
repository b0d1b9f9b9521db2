/**
 * Reads the OpenAPI constraints `pattern` and `oneOf` from CEL rules. The CRDs have rules instead of these constraints, because the
 * message of a rule says what is wrong and what to do. The generated types, schemas and pages need the constraints.
 * Also extracts the rules themselves, which `inlay validate` evaluates.
 */
import type { JSONSchema } from "json-schema-to-typescript";
import type { CelRule, RuleTree } from "../src/apimachinery/cel.ts";

const MATCHES = /^self\.matches\(r'([^']*)'\)$/;
const EITHER = /^has\(self\.(\w+)\) != has\(self\.(\w+)\)$/;
const ONE_OF = /^\[(has\(self\.\w+\)(?:, has\(self\.\w+\))+)\]\s*\.exists_one\(given, given\)$/;

/** A copy of the schema with the constraints of its rules. */
export function withConstraints(schema: JSONSchema): JSONSchema {
  const { properties, items, additionalProperties } = schema;
  const rules = ((schema["x-kubernetes-validations"] ?? []) as { rule: string }[]).map(({ rule }) => rule.trim());
  const [pattern] = rules.flatMap((rule) => patternOf(rule) ?? []);
  const choices = rules.map(choicesOf).find((names) => names.length > 0);
  return {
    ...schema,
    ...(pattern !== undefined && { pattern }),
    ...(choices !== undefined && { oneOf: choices.map((name) => ({ required: [name] })) }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([key, each]) => [key, withConstraints(each)])),
    }),
    ...(items && { items: withConstraints(items as JSONSchema) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: withConstraints(additionalProperties) }),
  };
}

/** The part of a schema that has rules or leads to them. Undefined if there are none. */
export function rulesIn(schema: JSONSchema): RuleTree | undefined {
  const stored = (schema["x-kubernetes-validations"] ?? []) as CelRule[];
  const rules = stored.map(({ rule, message, fieldPath }) => ({ rule, message, ...(fieldPath && { fieldPath }) }));
  const below = Object.entries(schema.properties ?? {}).flatMap(([key, each]) => {
    const found = rulesIn(each);
    return found === undefined ? [] : [[key, found] as const];
  });
  const items = schema.items && rulesIn(schema.items as JSONSchema);
  const entries = typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
  const isEmpty = rules.length === 0 && below.length === 0 && items === undefined && entries === undefined;
  if (isEmpty) return undefined;
  return {
    ...(rules.length > 0 && { rules }),
    ...(below.length > 0 && { properties: Object.fromEntries(below) }),
    ...(items && { items }),
    ...(entries && { additionalProperties: rulesIn(entries) ?? {} }),
  };
}

/** The regular expression of a rule that is nothing else. */
export const patternOf = (rule: string): string | undefined => MATCHES.exec(rule)?.[1];

/** The fields of which a rule requires exactly one. */
function choicesOf(rule: string): string[] {
  const names = EITHER.exec(rule)?.slice(1) ?? ONE_OF.exec(rule)?.[1]?.match(/(?<=self\.)\w+/g) ?? [];
  // CEL spells a field called namespace as __namespace__.
  return names.map((name) => name.replace(/^__(.*)__$/, "$1"));
}
