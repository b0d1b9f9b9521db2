/** Compiles the transforms of the type string, which convert any value to a string. */
import { createHash } from "node:crypto";
import type { JsonValue } from "../../apimachinery/objects.ts";
import { compilePattern, type Pattern } from "../../apimachinery/pattern.ts";
import {
  assertShort,
  bytesOf,
  compareKeys,
  finite,
  type GoValue,
  invalid,
  TextBuilder,
  textOf,
  typeOf,
} from "./go/value.ts";
import { compileGoFormat, plainText } from "./go-format.ts";
import { mistake, type Options } from "./options.ts";
import type { ConcretePath } from "./path.ts";
import type { Work } from "./work.ts";

const ESCAPED = /[<>&\u2028\u2029]/g;
const RAW_BYTE = /[\udc80-\udcff]/u;

/** Throws Problem("InvalidValue") for infinity and NaN. */
function toJsonText(value: GoValue): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") return numberText(value);
  if (Array.isArray(value)) return `[${value.map(toJsonText).join(",")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const keys = Object.keys(value).sort(compareKeys);
  return `{${keys.map((key) => `${quoted(key)}:${toJsonText(value[key] as GoValue)}`).join(",")}}`;
}

const numberText = (value: number): string => (Object.is(value, -0) ? "-0" : String(finite(value)));

function quoted(text: string): string {
  // Go writes a byte that is not UTF-8 as the escaped replacement character.
  const parts = text.isWellFormed() ? [text] : text.split(RAW_BYTE);
  return `"${parts.map((part) => JSON.stringify(part).slice(1, -1).replace(ESCAPED, unicode)).join("\\ufffd")}"`;
}

const unicode = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Greek letters with an iota subscript, whose other case in JavaScript has two letters. */
const WITH_IOTA = /[\u1f80-\u1f87\u1f90-\u1f97\u1fa0-\u1fa7\u1fb3\u1fc3\u1ff3]/;
const DOTTED_I = "\u0130";

/** Changes the case of a string like Go: by `each`, which changes one character to exactly one other. Replaces bytes that are not UTF-8. */
function changeCase(text: string, ascii: "toUpperCase" | "toLowerCase", each: (character: string) => string): string {
  return /^[\0-\x7f]*$/.test(text) ? text[ascii]() : Array.from(text.toWellFormed(), each).join("");
}

function upper(character: string): string {
  const [upper, more] = character.toUpperCase();
  if (upper !== undefined && more === undefined) return upper;
  if (!WITH_IOTA.test(character)) return character;
  const code = character.charCodeAt(0);
  return String.fromCharCode(code + (code < 0x1fb0 ? 8 : 9));
}

function lower(character: string): string {
  return character === DOTTED_I ? "i" : character.toLowerCase();
}

/** A transform, and the texts that the composition contains in it. */
export interface Step {
  apply(value: GoValue, work: Work): GoValue;
  constants: readonly string[];
  /** Whether the composition lists all possible results. */
  isListed?: boolean;
  /** The fields of each element, if the step produces a list of objects. */
  elements?: readonly ElementField[];
}

/** A field of each element, and whether the composition lists all its possible values. */
export interface ElementField {
  readonly writes: ConcretePath;
  readonly isListed: boolean;
}

export interface CompiledTransforms {
  /** Throws Problem with the failed transform and the reason, never a value. The caller adds the place and path. */
  apply(value: JsonValue, work: Work): JsonValue;
  /** All texts that the composition contains in them: formats, map values, results, replacements, and texts in nested JSON. */
  constants: readonly string[];
  /** Whether the composition lists all possible results. */
  isListed: boolean;
  /** Whether there are none. */
  isNone: boolean;
  /** The fields of each element, if the last transform is forEach. */
  elements: readonly ElementField[] | undefined;
}

/** In instructions: a text of one character alone may not need more than the work for a binding. */
const MAX_EFFORT = 5_000_000;

/** Throws Problem("InvalidComposition") unless the text is a pattern. */
export function checkPattern(text: string, place: string): Pattern {
  const pattern = compilePattern(text, { left: MAX_EFFORT });
  if (pattern === "TooLarge" || pattern === undefined) {
    throw mistake(place, "the regular expression is too large; shorten it, or use smaller numbers in braces");
  }
  if (pattern === "Invalid")
    throw mistake(place, "must be a regular expression of RE2; see https://golang.org/s/re2syntax");
  return pattern;
}

/** Whether a checked pattern matches a part of the text. Throws like `groupIn`. */
export const isFoundIn = (pattern: string, text: string, work: Work): boolean =>
  groupIn(pattern, text, 0, work) !== null;

/** The part of the text that a group of a checked pattern matches. Throws Problem("InvalidValue") if that needs too much work. */
function groupIn(pattern: string, text: string, group: number, { effort }: Work): string | null {
  // The cache of patterns stores it while it is used. If each composition stored its own, the memory would be unlimited.
  const compiled = compilePattern(pattern, effort);
  const found = typeof compiled === "object" ? compiled.groupIn(text, group, effort) : undefined;
  if (found === undefined) throw invalid("the string is too long to match the regular expressions");
  return found;
}

const OPTION = {
  Format: "fmt",
  Convert: "convert",
  TrimPrefix: "trim",
  TrimSuffix: "trim",
  Regexp: "regexp",
  Join: "join",
  Replace: "replace",
  Split: "split",
} as const;
type StringType = keyof typeof OPTION;
const TYPES = Object.keys(OPTION) as StringType[];
const NAMES = ["type", ...new Set(Object.values(OPTION))];

export function compileString(options: Options): Step {
  options.only(NAMES);
  const type = options.choice("type", TYPES, "Format");
  options.only(["type", OPTION[type]], NAMES);
  return compilers[type](options);
}

const compilers: Readonly<Record<StringType, (options: Options) => Step>> = {
  Format: compileFmt,
  Convert: (options) => ({ apply: conversions[options.choice("convert", CONVERSIONS)], constants: [] }),
  TrimPrefix: (options) => {
    const trim = options.text("trim", '"prefix-"');
    return onText((text) => (text.startsWith(trim) ? text.slice(trim.length) : text));
  },
  TrimSuffix: (options) => {
    const trim = options.text("trim", '"-suffix"');
    return onText((text) => (text.endsWith(trim) ? text.slice(0, text.length - trim.length) : text));
  },
  Regexp: compileRegexp,
  Join: compileJoin,
  Replace: compileReplace,
  Split: compileSplit,
};

/** A transform of the text of a value. */
const onText = (change: (text: string, work: Work) => GoValue, constants: readonly string[] = []): Step => ({
  apply: (value, work) => change(plainText(value), work),
  constants,
});

function compileFmt(options: Options): Step {
  const fmt = options.text("fmt", '"%s-primary"');
  const format = compileGoFormat(fmt, 1, `${options.place}.fmt`);
  return { apply: (value) => format([value]), constants: [fmt] };
}

const conversions = {
  ToUpper: (value: GoValue) => changeCase(plainText(value), "toUpperCase", upper),
  ToLower: (value: GoValue) => changeCase(plainText(value), "toLowerCase", lower),
  ToJson: toJsonText,
  ToBase64: (value: GoValue) => bytesOf(plainText(value)).toString("base64"),
  FromBase64: (value: GoValue) => fromBase64(plainText(value)),
  ToSha1: (value: GoValue) => createHash("sha1").update(hashed(value)).digest("hex"),
  ToSha256: (value: GoValue) => createHash("sha256").update(hashed(value)).digest("hex"),
  ToSha512: (value: GoValue) => createHash("sha512").update(hashed(value)).digest("hex"),
  ToAdler32: (value: GoValue) => String(adler32(hashed(value))),
} as const;
const CONVERSIONS = Object.keys(conversions) as (keyof typeof conversions)[];

/** The string itself, or the JSON of any other value. */
const hashed = (value: GoValue) => bytesOf(typeof value === "string" ? value : toJsonText(value));

/** Standard alphabet with padding; line breaks may be anywhere. */
function fromBase64(text: string): string {
  const plain = text.replace(/[\r\n]/g, "");
  if (plain.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(plain)) {
    throw invalid("the string is not base64 of the standard alphabet with padding");
  }
  return textOf(Buffer.from(plain, "base64"));
}

const ADLER_MODULUS = 65_521;

function adler32(bytes: Uint8Array): number {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % ADLER_MODULUS;
    b = (b + a) % ADLER_MODULUS;
  }
  return b * 0x10000 + a;
}

function compileRegexp(options: Options): Step {
  const regexp = options.below("regexp", 'regexp: {match: "[a-z]+"}').only(["match", "group"]);
  const match = regexp.text("match", '"[a-z]+"');
  const group = regexp.get("group") === undefined ? 0n : regexp.int64("group");
  const { groups } = checkPattern(match, `${regexp.place}.match`);
  if (group < 0n || group > BigInt(groups)) {
    throw regexp.wrong("group", `does not exist in the regular expression, which has the groups 0 to ${groups}`);
  }
  return onText((text, work) => {
    const found = groupIn(match, text, Number(group), work);
    if (found === null) throw invalid("the regular expression does not match the string");
    return found;
  });
}

function compileJoin(options: Options): Step {
  const separator = options.below("join", 'join: {separator: ","}').only(["separator"]).text("separator", '","');
  const apply = (value: GoValue) => {
    if (!Array.isArray(value)) throw invalid(`Join takes a list, not ${typeOf(value)}`);
    const to = new TextBuilder();
    for (const [position, each] of value.entries()) {
      if (position > 0) to.add(separator);
      to.add(plainText(each));
    }
    return to.toString();
  };
  return { apply, constants: [separator] };
}

function compileReplace(options: Options): Step {
  const swap = options.below("replace", 'replace: {search: "_", replace: "-"}').only(["search", "replace"]);
  const [search, replace] = [swap.text("search", '"_"'), swap.text("replace", '"-", or "" to remove what is found')];
  if (search === "") throw swap.wrong("search", 'is empty; write the text to replace, such as "_"');
  const swapped = (text: string) => {
    const parts = text.split(search);
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    assertShort(length + (parts.length - 1) * replace.length);
    return parts.join(replace);
  };
  return onText(swapped, [replace]);
}

/** Not in Crossplane. */
function compileSplit(given: Options): Step {
  const options = given.below("split", 'separator: "," below it').only(["separator"]);
  const separator = options.text("separator", '","');
  if (separator === "") throw options.wrong("separator", 'is empty; write, for example, ","');
  const split = (text: string) => text.split(separator).map((each) => each.trim());
  return onText((text) => split(text).filter((each) => each !== ""));
}
