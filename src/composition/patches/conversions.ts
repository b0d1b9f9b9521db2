/** Compiles the transform convert: the types, and their formats. */
import { isInt64, isObject, isTooDeep, MAX_LEVELS, parseJson } from "../../apimachinery/json.ts";
import type { JsonValue } from "../../apimachinery/objects.ts";
import { formatFloat } from "./go/floats.ts";
import { parseBoolean, parseFloat64, parseInteger } from "./go/numbers.ts";
import { parseQuantity } from "./go/quantity.ts";
import { fromJson, type GoValue, invalid, typeOf } from "./go/value.ts";
import type { Options } from "./options.ts";
import type { Step } from "./steps.ts";

const TO_TYPES = ["string", "int", "int64", "bool", "float64", "object", "array"] as const;
const FORMATS = ["none", "quantity", "json"] as const;
type Target = Exclude<(typeof TO_TYPES)[number], "int">;
type Format = (typeof FORMATS)[number];

export function compileConvert(options: Options): Step {
  options.only(["toType", "format"]);
  const toType = options.choice("toType", TO_TYPES);
  const format = options.choice("format", FORMATS, "none");
  const target = toType === "int" ? "int64" : toType;
  if ((target === "object" || target === "array") && format !== "json") {
    throw options.wrong("format", `must be json to convert a string to an ${target}; write format: json`);
  }
  return { apply: (value) => convert(value, target, format), constants: [] };
}

function convert(value: GoValue, target: Target, format: Format): GoValue {
  if (typeof value === "object") throw invalid(`convert takes a string, a number or a boolean, not ${typeOf(value)}`);
  const from = SOURCES[typeof value as keyof typeof SOURCES];
  if (from === target) return value;
  if (format === "none") {
    if (typeof value === "string") return fromText(value, target);
    return typeof value === "boolean" ? fromBoolean(value, target) : fromNumber(value, target);
  }
  if (typeof value === "string" && format === "quantity" && target === "float64") return fromQuantity(value);
  if (typeof value === "string" && format === "json" && (target === "object" || target === "array")) {
    return fromJsonText(value, target);
  }
  throw invalid(`convert can't convert ${typeOf(value)} to ${target} with the format ${format}`);
}

const SOURCES = { string: "string", bigint: "int64", number: "float64", boolean: "bool" } as const;

const RULES: Readonly<Record<string, string>> = {
  int64: "a whole number of 64 bits, such as 5432 or -7",
  bool: "one of 1, t, T, TRUE, true, True, 0, f, F, FALSE, false and False",
  float64: "a number such as 0.5 or 2e9 that a float64 can hold",
};

function fromText(text: string, target: Target): GoValue {
  const parse = { int64: parseInteger, bool: parseBoolean, float64: parseFloat64 }[
    target as "int64" | "bool" | "float64"
  ];
  const parsed = parse(text);
  if (parsed === undefined) throw invalid(`the string is not ${RULES[target]}`);
  return parsed;
}

function fromBoolean(value: boolean, target: Target): GoValue {
  if (target === "string") return String(value);
  return target === "int64" ? BigInt(value) : Number(value);
}

function fromNumber(value: bigint | number, target: Target): GoValue {
  if (target === "string") return typeof value === "bigint" ? String(value) : formatFloat(value, "f", -1);
  if (target === "bool") return Number(value) === 1;
  return target === "float64" ? Number(value) : wholePart(Number(value));
}

/** In Go, the conversion of a number that an int64 can't hold depends on the processor. */
function wholePart(value: number): bigint {
  const whole = Number.isFinite(value) ? BigInt(Math.trunc(value)) : undefined;
  if (whole === undefined || !isInt64(whole)) throw invalid("the number is too large for 64 bits");
  return whole;
}

function fromQuantity(text: string): number {
  const quantity = parseQuantity(text);
  if (quantity === undefined) throw invalid("the string is not a quantity, such as 500m or 1.5Gi");
  return quantity;
}

/** `null` is neither, and passes as null, as in Go. */
function fromJsonText(text: string, target: "object" | "array"): GoValue {
  const parsed = parsedJson(text);
  const isRight = parsed === null || (target === "array" ? Array.isArray(parsed) : isObject(parsed));
  if (!isRight) throw invalid(`the string is JSON, but not of the type ${target}`);
  return fromJson(parsed);
}

function parsedJson(text: string): JsonValue {
  if (isTooDeep(text)) throw invalid(`the string is JSON with more than ${MAX_LEVELS} levels`);
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid("the string is not JSON");
    throw error;
  }
}
