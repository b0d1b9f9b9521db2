/** Checks a value against the rules of its schema other than the type, and against the formats that the API server checks. */
import { isIPv6 } from "node:net";
import type { Effort } from "../apimachinery/glob.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import { compilePattern, Pattern } from "../apimachinery/pattern.ts";

const HEX = "[0-9a-f]";
const uuid = (third: string, fourth: string) =>
  new RegExp(`^${HEX}{8}-?${HEX}{4}-?${third}-?${fourth}-?${HEX}{12}$`, "i");
const matches = (pattern: RegExp) => (text: string) => pattern.test(text);

/** As kube-openapi's strfmt, and never stricter. The others, such as email and duration, are left to the API server. */
const formats = new Map<string, (text: string) => boolean>([
  ["byte", (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)],
  ["cidr", isCidr],
  ["date", isDate],
  ["datetime", isDateTime],
  ["hexcolor", matches(/^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i)],
  ["ipv4", (text) => text.includes(".") && isIp(text)],
  ["ipv6", (text) => text.includes(":") && isIp(text)],
  ["mac", matches(/^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1)*[0-9a-f]{2}|(?:[0-9a-f]{4}\.)+[0-9a-f]{4})$/i)],
  ["uri", isUri],
  ["uuid", matches(uuid(`${HEX}{4}`, `${HEX}{4}`))],
  ["uuid3", matches(uuid(`3${HEX}{3}`, `${HEX}{4}`))],
  ["uuid4", matches(uuid(`4${HEX}{3}`, `[89ab]${HEX}{3}`))],
  ["uuid5", matches(uuid(`5${HEX}{3}`, `[89ab]${HEX}{3}`))],
]);

/** True for unknown formats too. */
function isOfFormat(format: string, text: string): boolean {
  return formats.get(format.replaceAll("-", ""))?.(text) ?? true;
}

/** Only the API server checks longer ones: removing leading zeros takes time with the cube of the length. */
const MAX_IP_LENGTH = 128;

/** Accepts leading zeros, as Go did before 1.17. */
function isIp(text: string): boolean {
  if (text.length > MAX_IP_LENGTH) return true;
  if (text.includes(":")) return !text.includes("%") && isIPv6(text.replace(/0*(\d+)(?=\.|$)/g, "$1"));
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^\d+$/.test(part) && Number(part) <= 255);
}

function isCidr(text: string): boolean {
  const [, ip = "", bits = ""] = /^([^/]+)\/(\d+)$/.exec(text) ?? [];
  return isIp(ip) && Number(bits) <= (ip.includes(":") ? 128 : 32);
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

function isDateTime(text: string): boolean {
  const [date = "", time = ""] = text.toLowerCase().split("t");
  const [, hours = "", minutes = "", seconds = ""] =
    /^(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})$/.exec(time) ?? [];
  return isDate(date) && hours !== "" && hours <= "23" && minutes <= "59" && seconds <= "59";
}

/** Refuses what Go's url.ParseRequestURI certainly refuses: texts without path or scheme, and control characters. */
function isUri(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern refuses these characters
  return /^(?:\/|[a-z][a-z0-9+.-]*:)/i.test(text) && !/[\x00-\x1f\x7f]/.test(text);
}

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
  if (minimum !== undefined && (value < minimum || (exclusiveMinimum && value <= minimum)))
    return `must be ${exclusiveMinimum ? "more than" : "at least"} ${minimum}`;
  if (maximum !== undefined && (value > maximum || (exclusiveMaximum && value >= maximum)))
    return `must be ${exclusiveMaximum ? "less than" : "at most"} ${maximum}`;
  const bits = format === "int32" ? 32 : schema.type === "integer" ? 64 : undefined;
  if (bits !== undefined && Number.isInteger(Number(value)) && BigInt.asIntN(bits, BigInt(value)) !== BigInt(value))
    return `must be an integer of ${bits} bits`;
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
