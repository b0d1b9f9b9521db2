/** Checks a value against the rules of its schema other than the type. */
import type { Effort } from "../apimachinery/glob.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { compilePattern, Pattern } from "../apimachinery/pattern.ts";
import { isOfFormat } from "./formats.ts";

const MAX_LISTED = 16;

/**
 * Says what a value must be, and quotes the rule but never the value: "must match ^https://". Undefined if the value
 * meets all rules that are checked here: enum, pattern, lengths, limits, formats, including those in allOf. Skips a
 * pattern if too little effort is left: the API server checks it.
 */
export function brokenRule(schema: OpenApiSchema, value: JsonValue, effort: Effort): string | undefined {
  return (
    brokenEnum(schema, value) ??
    (typeof value === "string" ? brokenByText(schema, value, effort) : undefined) ??
    (typeof value === "number" || typeof value === "bigint" ? brokenByNumber(schema, value) : undefined) ??
    (Array.isArray(value) ? brokenByList(schema, value) : undefined) ??
    schema.allOf?.map((part) => brokenRule(part, value, effort)).find((broken) => broken !== undefined)
  );
}

function brokenEnum({ enum: choices }: OpenApiSchema, value: JsonValue): string | undefined {
  if (choices === undefined || choices.some((choice) => sameJson(choice, value))) return undefined;
  const listed = choices.slice(0, MAX_LISTED).map((choice) => JSON.stringify(choice));
  return `must be one of ${listed.join(", ")}${choices.length > MAX_LISTED ? ", and others" : ""}`;
}

function brokenByText(schema: OpenApiSchema, text: string, effort: Effort): string | undefined {
  const { minLength, maxLength, pattern, format } = schema;
  if (minLength !== undefined || maxLength !== undefined) {
    const length = characters(text);
    if (minLength !== undefined && length < minLength) return `must have at least ${minLength} characters`;
    if (maxLength !== undefined && length > maxLength) return `must have at most ${maxLength} characters`;
  }
  if (pattern !== undefined && !mayMatch(pattern, text, effort)) return `must match the pattern ${pattern}`;
  if (format !== undefined && !isOfFormat(format, text)) return `must be of the format ${format}`;
  return undefined;
}

function brokenByNumber(schema: OpenApiSchema, value: number | bigint): string | undefined {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, format } = schema;
  if (minimum !== undefined && (value < minimum || (exclusiveMinimum && value <= minimum))) {
    return `must be ${exclusiveMinimum ? "more than" : "at least"} ${minimum}`;
  }
  if (maximum !== undefined && (value > maximum || (exclusiveMaximum && value >= maximum))) {
    return `must be ${exclusiveMaximum ? "less than" : "at most"} ${maximum}`;
  }
  const bits = format === "int32" ? 32 : schema.type === "integer" ? 64 : undefined;
  if (bits !== undefined && Number.isInteger(Number(value)) && BigInt.asIntN(bits, BigInt(value)) !== BigInt(value)) {
    return `must be an integer of ${bits} bits`;
  }
  const isWhole = Number.isSafeInteger(multipleOf) && Number.isInteger(Number(value));
  if (isWhole && multipleOf && BigInt(value) % BigInt(multipleOf) !== 0n) return `must be a multiple of ${multipleOf}`;
  return undefined;
}

/** Only the API server can check lists that it merges with elements of others. */
function brokenByList(schema: OpenApiSchema, list: JsonValue[]): string | undefined {
  const { minItems, maxItems } = schema;
  if ((schema["x-kubernetes-list-type"] ?? "atomic") !== "atomic") return undefined;
  if (minItems !== undefined && list.length < minItems) return `must have at least ${minItems} elements`;
  if (maxItems !== undefined && list.length > maxItems) return `must have at most ${maxItems} elements`;
  return undefined;
}

/** Counts Unicode code points, as the API server does. */
function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

function mayMatch(pattern: string, text: string, effort: Effort): boolean {
  const compiled = compilePattern(pattern, effort);
  return !(compiled instanceof Pattern) || compiled.isFoundIn(text, effort) !== false;
}
