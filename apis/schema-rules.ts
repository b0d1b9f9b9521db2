/**
 * Reads the OpenAPI constraints `pattern` and `oneOf` from CEL rules. The CRDs have rules instead of these constraints, because the
 * message of a rule says what is wrong and what to do. The generated types, schemas and pages need the constraints.
 */
import type { JSONSchema } from "json-schema-to-typescript";

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

/** The regular expression of a rule that is nothing else. */
export const patternOf = (rule: string): string | undefined => MATCHES.exec(rule)?.[1];

/** The fields of which a rule requires exactly one. */
function choicesOf(rule: string): string[] {
  const names = EITHER.exec(rule)?.slice(1) ?? ONE_OF.exec(rule)?.[1]?.match(/(?<=self\.)\w+/g) ?? [];
  // CEL spells a field called namespace as __namespace__.
  return names.map((name) => name.replace(/^__(.*)__$/, "$1"));
}
