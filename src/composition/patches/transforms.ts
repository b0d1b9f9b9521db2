/** Compiles the transforms of a patch to functions that change a value, one step after the other. */
import type { Transform } from "../../api/composition.ts";
import { isInt64 } from "../../apimachinery/json.ts";
import type { JsonValue } from "../../apimachinery/objects.ts";
import { eachOf, Problem } from "../../apimachinery/problem.ts";
import { compileConvert } from "./conversions.ts";
import { compileForEach } from "./for-each.ts";
import { bounded, fromJson, type GoValue, invalid, toJson, typeOf } from "./go/value.ts";
import { mistake, Options } from "./options.ts";
import { checkPattern, isFoundIn } from "./patterns.ts";
import type { CompiledTransforms, Step } from "./steps.ts";
import { compileString } from "./string-transforms.ts";
import type { Work } from "./work.ts";

const compilers = {
  math: compileMath,
  map: compileMap,
  match: compileMatch,
  string: compileString,
  convert: compileConvert,
  forEach: (options: Options) => compileForEach(options, compileTransforms),
} as const;
const TYPES = Object.keys(compilers) as (keyof typeof compilers)[];

/** Throws Problem("InvalidComposition"). Its message begins with the place of the mistake, and says what to write instead. */
export function compileTransforms(transforms: readonly Transform[] | undefined, place: string): CompiledTransforms {
  const given: unknown = transforms ?? [];
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
