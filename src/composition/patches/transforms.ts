/** Compiles the transforms of a patch to functions that change a value, one step after the other. */
import { isInt64, isObject, isTooDeep, MAX_LEVELS, parseJson } from "../../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../../apimachinery/objects.ts";
import { attemptSync, eachOf, Problem } from "../../apimachinery/problem.ts";
import { getField, MAX_WRITTEN_INDEX, setField } from "./fields.ts";
import { formatFloat } from "./go/floats.ts";
import { parseBoolean, parseFloat64, parseInteger, parseQuantity } from "./go/numbers.ts";
import { bounded, fromJson, GO_TYPES, type GoValue, invalid, toJson, typeOf } from "./go/value.ts";
import { mistake, Options } from "./options.ts";
import { type CompositePath, type ConcretePath, isConcrete, parseCompositePath } from "./path.ts";
import {
  type CompiledTransforms,
  checkPattern,
  compileString,
  type ElementField,
  isFoundIn,
  type Step,
} from "./string-transforms.ts";
import type { Work } from "./work.ts";

/** Throws Problem("InvalidComposition"). */
export function pathIn(options: Options, name: string, example: string): CompositePath {
  const text = options.text(name, example);
  const path = attemptSync(() => parseCompositePath(text));
  if (path instanceof Problem) throw options.wrong(name, path.what);
  return path;
}

/** The path, if it names one field. `advice` is the advice about a wildcard. Throws Problem("InvalidComposition"). */
export function concrete(options: Options, name: string, path: CompositePath, advice: string): ConcretePath {
  if (isConcrete(path)) return path;
  throw options.wrong(name, `has [*], ${advice}`);
}

/** Throws Problem("InvalidComposition") for an index that is too high. */
export function assertWritable(options: Options, name: string, { segments }: CompositePath): void {
  if (segments.some((segment) => segment.kind === "index" && segment.index > MAX_WRITTEN_INDEX))
    throw options.wrong(name, `has an index above ${MAX_WRITTEN_INDEX}, the highest that is written`);
}

const TO_TYPES = ["string", "int", "int64", "bool", "float64", "object", "array"] as const;
const FORMATS = ["none", "quantity", "json"] as const;
type Target = Exclude<(typeof TO_TYPES)[number], "int">;
type Format = (typeof FORMATS)[number];

/** Compiles the transform convert: the types, and their formats. */
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
  const from = GO_TYPES[typeof value as keyof typeof GO_TYPES];
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

const PARSERS = {
  int64: [parseInteger, "a whole number of 64 bits, such as 5432 or -7"],
  bool: [parseBoolean, "one of 1, t, T, TRUE, true, True, 0, f, F, FALSE, false and False"],
  float64: [parseFloat64, "a number such as 0.5 or 2e9 that a float64 can hold"],
} as const;

function fromText(text: string, target: Target): GoValue {
  const [parse, rule] = PARSERS[target as keyof typeof PARSERS];
  const parsed = parse(text);
  if (parsed === undefined) throw invalid(`the string is not ${rule}`);
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

const FIELD_NAMES = ["fromFieldPath", "toFieldPath", "transforms"];
const EXAMPLE = "a list of fields, as in [{fromFieldPath: name}]";

function compileForEach(options: Options): Step {
  options.only(["fields"]);
  const fields = options.list("fields").map((each, n) => compileField(each, `${options.place}.fields[${n}]`));
  if (fields.length === 0) throw options.missing("fields", EXAMPLE);
  const apply = (value: GoValue, work: Work): GoValue => {
    if (!Array.isArray(value)) throw invalid(`forEach takes a list, not ${typeOf(value)}`);
    return value.map((element, at) => {
      const from = toJson(element);
      if (!isObject(from)) throw invalid(`forEach takes a list of objects, and element ${at} is ${typeOf(element)}`);
      return elementOf(from, fields, at, work);
    });
  };
  return { apply, constants: fields.flatMap(({ transforms }) => transforms.constants), elements: fields };
}

interface CompiledField extends ElementField {
  readonly reads: ConcretePath;
  readonly transforms: CompiledTransforms;
}

function compileField(field: unknown, place: string): CompiledField {
  const options = new Options(field, place).only(FIELD_NAMES);
  const reads = pathOf(options, "fromFieldPath");
  const writes = options.get("toFieldPath") === undefined ? reads : pathOf(options, "toFieldPath");
  const transforms = compileTransforms(options.get("transforms"), place);
  if (transforms.elements !== undefined)
    throw options.wrong("transforms", "has forEach, which can't be in another forEach; copy the inner list as it is");
  return { reads, writes, transforms, isListed: transforms.isListed };
}

function pathOf(options: Options, name: string): ConcretePath {
  const given = pathIn(options, name, "the path of a field of each element, such as name");
  const path = concrete(options, name, given, "which a field of an element can't have");
  assertWritable(options, name, path);
  return path;
}

/** A field that is missing in the element is omitted. */
function elementOf(from: JsonObject, fields: readonly CompiledField[], at: number, work: Work): GoValue {
  const result: JsonObject = {};
  for (const { reads, writes, transforms } of fields) {
    const value = getField(from, reads.segments);
    if (value === undefined) continue;
    const changed = attemptSync(() => transforms.apply(value, work));
    if (changed instanceof Problem) throw changed.within(`element ${at}, ${reads.text}`);
    if (changed !== null) setField(result, writes.segments, changed);
  }
  return fromJson(result);
}

const compilers = {
  math: compileMath,
  map: compileMap,
  match: compileMatch,
  string: compileString,
  convert: compileConvert,
  forEach: compileForEach,
} as const;
const TYPES = Object.keys(compilers) as (keyof typeof compilers)[];

/** Throws Problem("InvalidComposition"). Its message begins with the place of the mistake, and says what to write instead. */
export function compileTransforms(transforms: unknown, place: string): CompiledTransforms {
  const given = transforms ?? [];
  if (!Array.isArray(given))
    throw mistake(`${place}.transforms`, "must be a list; write each transform with a dash before it");
  const steps = eachOf(given, (transform, n) => compileTransform(transform, `${place}.transforms[${n}]`));
  const chain = (value: GoValue, work: Work) => steps.reduce((from, step, n) => applied(step, from, n, work), value);
  return {
    apply: (value, work) => (steps.length === 0 ? value : toJson(chain(fromJson(value), work))),
    constants: steps.flatMap(({ constants }) => constants),
    // A result of a listed value is listed too.
    isListed: steps.some(({ isListed }) => isListed),
    isNone: steps.length === 0,
    elements: steps.at(-1)?.elements,
  };
}

function compileTransform(transform: unknown, place: string): Step {
  const options = new Options(transform, place).only(["type", ...TYPES]);
  const type = options.choice("type", TYPES);
  options.only(["type", type], ["type", ...TYPES]);
  return compilers[type](options.below(type, `${type}: with its options below it`));
}

function applied(step: Step, value: GoValue, position: number, work: Work): GoValue {
  try {
    const result = step.apply(value, work);
    work.value(result);
    return typeof result === "string" ? bounded(result) : result;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw error.within(`transforms[${position}]`);
  }
}

const MATH = { Multiply: "multiply", ClampMin: "clampMin", ClampMax: "clampMax" } as const;
const MATH_NAMES = ["type", ...Object.values(MATH)];

function compileMath(options: Options): Step {
  options.only(MATH_NAMES);
  const type = options.choice("type", Object.keys(MATH) as (keyof typeof MATH)[], "Multiply");
  const by = options.only(["type", MATH[type]], MATH_NAMES).int64(MATH[type]);
  const apply = (value: GoValue) => {
    if (typeof value !== "bigint" && typeof value !== "number") {
      throw invalid(
        `math takes a number, not ${typeOf(value)}; convert the value first, as in {type: convert, convert: {toType: int64}}`,
      );
    }
    if (type === "Multiply") return multiplied(value, by);
    // For a number with a fraction, the whole part counts.
    const whole = typeof value === "bigint" ? value : Math.trunc(value);
    return (type === "ClampMin" ? whole < by : whole > by) ? by : value;
  };
  return { apply, constants: [] };
}

function multiplied(value: bigint | number, by: bigint): GoValue {
  if (typeof value === "number") return value * Number(by);
  const product = value * by;
  if (!isInt64(product)) throw invalid("the product is too large for 64 bits");
  return product;
}

function compileMap(options: Options): Step {
  const results = new Map(options.keys.map((key) => [key.toWellFormed(), jsonOf(options.get(key))]));
  if (results.size === 0)
    throw mistake(options.place, "must not be empty; write pairs directly below it, as in map: {eu: eu-west-1}");
  const apply = (value: GoValue) => {
    if (typeof value !== "string") throw invalid(`map takes a string, not ${typeOf(value)}`);
    const result = results.get(value);
    if (result === undefined) throw invalid("map has no key for the value");
    return result;
  };
  return { apply, constants: [...results.values()].flatMap(textsIn), isListed: true };
}

const MATCH_NAMES = ["patterns", "fallbackTo", "fallbackValue"];
const PATTERN_NAMES = ["type", "literal", "regexp", "result"];

function compileMatch(options: Options): Step {
  options.only(MATCH_NAMES);
  const fallbackTo = options.choice("fallbackTo", ["Value", "Input"], "Value");
  const fallback = jsonOf(options.get("fallbackValue"));
  if (fallbackTo === "Input" && fallback !== null) {
    throw options.wrong("fallbackValue", "has no effect with fallbackTo: Input; remove one of them");
  }
  const patterns = options
    .list("patterns")
    .map((each, n) => compileMatchPattern(each, `${options.place}.patterns[${n}]`));
  const apply = (value: GoValue, work: Work) => {
    if (typeof value !== "string") throw invalid(`match takes a string, not ${typeOf(value)}`);
    const first = patterns.find(({ matches }) => matches(value, work));
    if (first !== undefined) return first.result;
    return fallbackTo === "Input" ? value : fallback;
  };
  const constants = [...patterns.map(({ result }) => result), fallback].flatMap(textsIn);
  return { apply, constants, isListed: fallbackTo === "Value" };
}

interface MatchPattern {
  matches(text: string, work: Work): boolean;
  result: GoValue;
}

function compileMatchPattern(pattern: unknown, place: string): MatchPattern {
  const options = new Options(pattern, place).only(PATTERN_NAMES);
  const type = options.choice("type", ["literal", "regexp"], "literal");
  options.only(["type", type, "result"], PATTERN_NAMES);
  const text = options.text(type, type === "literal" ? '"production"' : '"^prod-"');
  if (type === "regexp") checkPattern(text, `${place}.regexp`);
  return {
    matches: type === "literal" ? (value) => value === text : (value, work) => isFoundIn(text, value, work),
    result: jsonOf(options.get("result")),
  };
}

const jsonOf = (value: unknown): GoValue => fromJson((value ?? null) as JsonValue);

/** The texts of a value and of everything in it, including keys. */
function textsIn(value: GoValue): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => [...(Array.isArray(value) ? [] : [key]), ...textsIn(each)]);
}
