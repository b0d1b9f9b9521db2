/** Compiles the formats of compositions, which are those of Go's fmt: parses the directives, and prints each value, with quotes like strconv. */
import type { JsonValue } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { formatFloat } from "./go/floats.ts";
import {
  bytesOf,
  compareKeys,
  fromJson,
  GO_TYPES,
  type GoValue,
  invalid,
  isRawByte,
  TextBuilder,
  typeOf,
} from "./go/value.ts";

/** JavaScript's Unicode is newer than Go's, so it has some more characters. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const MAX_RUNE = 0x10ffffn;
const REPLACEMENT = 0xfffd;

const NAMED: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

const isPrintable = (character: string): boolean => PRINTABLE.test(character);

/** The text in quotation marks. */
function quote(text: string, mark: '"' | "'", isAscii: boolean): string {
  return mark + Array.from(text, (character) => escaped(character, mark, isAscii)).join("") + mark;
}

/** The character of a number; the replacement character if there is none. */
function characterOf(value: bigint): string {
  const isSurrogate = value >= 0xd800n && value <= 0xdfffn;
  return String.fromCodePoint(value < 0n || value > MAX_RUNE || isSurrogate ? REPLACEMENT : Number(value));
}

/** Whether a string can be written in backquotes unchanged. */
function canBackquote(text: string): boolean {
  return text.isWellFormed() && !/[^\P{Cc}\t]|[`\u007f\ufeff]/u.test(text.replace(/[\u0080-\u009f]/g, ""));
}

function escaped(character: string, mark: string, isAscii: boolean): string {
  const code = character.codePointAt(0) as number;
  if (isRawByte(code)) return `\\x${(code & 0xff).toString(16)}`;
  if (character === mark || character === "\\") return `\\${character}`;
  if ((!isAscii || code < 0x80) && isPrintable(character)) return character;
  const named = NAMED[character];
  if (named !== undefined) return named;
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** A verb with its flags, width and precision. */
type Directive = Readonly<ReturnType<typeof directiveOf>>;

/** The types that verbs print. Lists and objects are printed by their contents. */
const TAKES: Readonly<Record<string, RegExp>> = {
  string: /^[vsqxX]$/,
  bigint: /^[vdboOxXcqU]$/,
  number: /^[vbgGxXfFeE]$/,
  boolean: /^[vt]$/,
};

const VERBS = "v T t b c d o O q x X U e E f F g G s";
const isVerb = (verb: string): boolean => VERBS.split(" ").includes(verb);

const [LIST_TYPE, OBJECT_TYPE] = ["[]interface {}", "map[string]interface {}"];

/** Throws Problem("InvalidValue") if the verb does not take the value, where Go prints an error into the text. */
function print(value: GoValue, directive: Directive, to: TextBuilder): void {
  if (value === null && !/^[vT]$/.test(directive.verb)) throw wrongType(value, directive);
  if (value === null) to.add(padded("<nil>", directive));
  else if (directive.verb === "T") to.add(padded(truncated(goTypeOf(value), directive), directive));
  else printAny(value, directive, to);
}

function printAny(value: GoValue, directive: Directive, to: TextBuilder): void {
  if (value === null) to.add(directive.goSyntax ? "interface {}(nil)" : "<nil>");
  else if (typeof value === "object") printAll(value, directive, to);
  else if (TAKES[typeof value]?.test(directive.verb)) to.add(scalarText(value, directive));
  else throw wrongType(value, directive);
}

function printAll(value: GoValue[] | { [key: string]: GoValue }, directive: Directive, to: TextBuilder): void {
  const { goSyntax } = directive;
  const isList = Array.isArray(value);
  to.add(goSyntax ? `${goTypeOf(value)}{` : isList ? "[" : "map[");
  const keys = isList ? [...value.keys()] : Object.keys(value).sort(compareKeys);
  for (const [position, key] of keys.entries()) {
    if (position > 0) to.add(goSyntax ? ", " : " ");
    if (typeof key === "string") {
      printAny(key, directive, to);
      to.add(":");
    }
    printAny((value as { [key: string | number]: GoValue })[key] as GoValue, directive, to);
  }
  to.add(goSyntax ? "}" : "]");
}

function goTypeOf(value: Exclude<GoValue, null>): string {
  if (typeof value === "object") return Array.isArray(value) ? LIST_TYPE : OBJECT_TYPE;
  return GO_TYPES[typeof value as keyof typeof GO_TYPES];
}

function scalarText(value: string | bigint | number | boolean, directive: Directive): string {
  if (typeof value === "string") return stringText(value, directive);
  if (typeof value === "bigint") return integerText(value, directive);
  if (typeof value === "number") return floatText(value, directive);
  return padded(String(value), directive);
}

function stringText(text: string, directive: Directive): string {
  const { verb, goSyntax, sharp, plus } = directive;
  if (verb === "x" || verb === "X") return bytesText(text, directive);
  const short = truncated(text, directive);
  if (verb !== "q" && !goSyntax) return padded(short, directive);
  return padded(sharp && canBackquote(short) ? `\`${short}\`` : quote(short, '"', plus), directive);
}

function bytesText(text: string, directive: Directive): string {
  const { verb, sharp, space, precision } = directive;
  const bytes = bytesOf(text);
  const pairs =
    bytes
      .subarray(0, precision ?? bytes.length)
      .toString("hex")
      .match(/../g) ?? [];
  const prefix = sharp && pairs.length > 0 ? "0x" : "";
  const joined = prefix + pairs.join(space ? ` ${prefix}` : "");
  return padded(verb === "X" ? joined.toUpperCase() : joined, directive);
}

function integerText(value: bigint, directive: Directive): string {
  switch (directive.verb) {
    case "c":
      return padded(characterOf(value), directive);
    case "q":
      return padded(quote(characterOf(value), "'", directive.plus), directive);
    case "U":
      return padded(unicodeText(value, directive), { ...directive, zero: false });
    default:
      return digitsText(value, directive);
  }
}

function unicodeText(value: bigint, { sharp, precision = 0 }: Directive): string {
  const code = `U+${BigInt.asUintN(64, value).toString(16).toUpperCase().padStart(Math.max(4, precision), "0")}`;
  const isCharacter = value >= 0n && value <= 0x10ffffn && isPrintable(String.fromCodePoint(Number(value)));
  return sharp && isCharacter ? `${code} '${characterOf(value)}'` : code;
}

const BASES: Readonly<Record<string, number>> = { b: 2, o: 8, O: 8, x: 16, X: 16 };

function digitsText(value: bigint, directive: Directive): string {
  const { verb, minus, plus, space, sharp, zero, width, precision } = directive;
  const unzeroed = { ...directive, zero: false };
  if (precision === 0 && value === 0n) return padded("", unzeroed);
  const base = BASES[verb] ?? 10;
  const sign = value < 0n ? "-" : plus ? "+" : space ? " " : "";
  const filled = zero && !minus && width !== undefined ? width - sign.length : 0;
  const digits = (value < 0n ? -value : value).toString(base).padStart(precision ?? filled, "0");
  const text = verb === "X" ? digits.toUpperCase() : digits;
  return padded(sign + basePrefix(verb, base, text, sharp) + text, unzeroed);
}

function basePrefix(verb: string, base: number, digits: string, sharp: boolean): string {
  const octal = sharp && base === 8 && !digits.startsWith("0") ? "0" : "";
  if (verb === "O") return `0o${octal}`;
  if (!sharp) return "";
  return base === 2 ? "0b" : base === 16 ? `0${verb}` : octal;
}

/** The verb for FormatFloat, and its default number of digits. */
function floatVerb(verb: string): [string, number] {
  if (verb === "v") return ["g", -1];
  if (verb === "F") return ["f", 6];
  return [verb, /[feE]/.test(verb) ? 6 : -1];
}

function floatText(value: number, directive: Directive): string {
  const { minus, plus, space, zero, sharp, width = 0 } = directive;
  const [verb, usual] = floatVerb(directive.verb);
  const precision = directive.precision ?? usual;
  const written = formatFloat(value, verb, precision);
  const hasSign = /^[+-]/.test(written);
  const sign = hasSign && written[0] === "-" ? "-" : space && !plus ? " " : "+";
  const body = hasSign ? written.slice(1) : written;
  const unzeroed = { ...directive, zero: false };
  if (body === "NaN") return padded(plus || space ? sign + body : body, unzeroed);
  if (body === "Inf") return padded(sign + body, unzeroed);
  const number = sharp && verb !== "b" ? withPoint(body, verb, precision) : body;
  const isSigned = plus || sign !== "+";
  if (isSigned && zero && !minus) return sign + number.padStart(width - 1, "0");
  return padded(isSigned ? sign + number : number, directive);
}

/** With a decimal point and, for some verbs, trailing zeros, as the flag # requests. */
function withPoint(number: string, verb: string, precision: number): string {
  const tailAt = number.search(verb === "x" || verb === "X" ? /p/i : /[pe]/i);
  const [head, tail] = tailAt < 0 ? [number, ""] : [number.slice(0, tailAt), number.slice(tailAt)];
  const wanted = /^[gGx]$/.test(verb) ? (precision === -1 ? 6 : precision) : 0;
  // Counted like in Go: from the first character that is neither zero nor the point, including the x of 0x.
  const written = head.replace(".", "").replace(/^0+/, "").length;
  const isZero = head === "0";
  const zeros = Math.max(0, wanted - written - (isZero ? 1 : 0));
  return `${head}${head.includes(".") ? "" : "."}${"0".repeat(zeros)}${tail}`;
}

function truncated(text: string, { precision }: Directive): string {
  return precision === undefined || text.length <= precision ? text : Array.from(text).slice(0, precision).join("");
}

/** Padded with zeros only on the left; with spaces on both sides. */
function padded(text: string, { width = 0, minus, zero }: Directive): string {
  if (width === 0) return text;
  const missing = Math.max(0, width - Array.from(text).length);
  if (minus) return text + " ".repeat(missing);
  return (zero ? "0" : " ").repeat(missing) + text;
}

function wrongType(value: GoValue, { verb }: Directive) {
  return invalid(`the verb %${verb} of the format can't print ${typeOf(value)}; use %v, or convert the value first`);
}

/** A number in the format, or for `*` the index of the value that contains it. */
type Count = number | { readonly from: number };

interface ParsedDirective {
  readonly verb: string;
  readonly flags: string;
  readonly width: Count | undefined;
  readonly precision: Count | undefined;
  /** The index of the value, from 0. */
  readonly value: number;
}

const MAX_COUNT = 1_000;
const FLAGS = /[#0+\- ]*/y;
const DIGITS = /\d+/y;
const INDEX = /\[(\d+)\]/y;

class Parser {
  readonly #fmt: string;
  readonly #values: number;
  readonly #place: string;
  #at = 0;
  #next = 0;
  #isReordered = false;

  constructor(fmt: string, values: number, place: string) {
    this.#fmt = fmt;
    this.#values = values;
    this.#place = place;
  }

  /** Throws Problem("InvalidComposition") unless the directives take exactly so many values, with existing verbs. */
  parse(): (string | ParsedDirective)[] {
    const parts: (string | ParsedDirective)[] = [];
    for (;;) {
      const percent = this.#fmt.indexOf("%", this.#at);
      parts.push(this.#fmt.slice(this.#at, percent < 0 ? undefined : percent));
      if (percent < 0) break;
      this.#at = percent + 1;
      parts.push(this.#directive());
    }
    // Values with an explicit index may be used in any order, and omitted.
    if (!this.#isReordered && this.#next < this.#values) throw this.#wrongNumber();
    return parts;
  }

  #directive(): string | ParsedDirective {
    const flags = this.#take(FLAGS) ?? "";
    let hasIndex = this.#index();
    const width = this.#count(hasIndex);
    hasIndex &&= width === undefined;
    let precision: Count | undefined;
    if (this.#fmt[this.#at] === ".") {
      if (hasIndex) throw this.#wrong("write an index such as [1] directly before the verb or the *");
      this.#at += 1;
      hasIndex = this.#index();
      precision = this.#count(hasIndex) ?? 0;
      hasIndex &&= precision === 0;
    }
    if (!hasIndex) this.#index();
    const code = this.#fmt.codePointAt(this.#at);
    if (code === undefined) throw this.#wrong("a verb is missing after the last %; write %% for a percent sign");
    const verb = String.fromCodePoint(code);
    this.#at += verb.length;
    if (verb === "%") {
      if (typeof width === "object" || typeof precision === "object")
        throw this.#wrong("a percent sign takes no *; write %%");
      return "%";
    }
    if (!isVerb(verb)) throw this.#wrong(`%${verb} is not a verb; the verbs are ${VERBS}`);
    return { verb, flags, width, precision, value: this.#value() };
  }

  #count(hasIndex: boolean): Count | undefined {
    if (this.#fmt[this.#at] === "*") {
      this.#at += 1;
      return { from: this.#value() };
    }
    const digits = this.#take(DIGITS);
    if (digits === undefined) return undefined;
    if (hasIndex) throw this.#wrong("write an index such as [1] directly before the verb or the *");
    if (Number(digits) > MAX_COUNT) throw this.#wrong(`a width or precision is at most ${MAX_COUNT}`);
    return Number(digits);
  }

  /** Returns the index of the next value, and moves on. */
  #value(): number {
    if (this.#next >= this.#values) throw this.#wrongNumber();
    return this.#next++;
  }

  /** Reads an explicit index such as [1], if there is one, and moves to that value. */
  #index(): boolean {
    if (this.#fmt[this.#at] !== "[") return false;
    const index = Number(this.#take(INDEX)?.slice(1, -1));
    if (!(index >= 1 && index <= this.#values)) {
      throw this.#wrong(`an index is a whole number in brackets from [1] to [${this.#values}]`);
    }
    this.#next = index - 1;
    this.#isReordered = true;
    return true;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#fmt)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #wrongNumber(): Problem {
    const there = this.#values === 1 ? "there is one value" : `there are ${this.#values} values`;
    const advice = this.#values === 1 ? "write one verb, such as %s, or %[1]s to repeat it" : "write one verb for each";
    return this.#wrong(`${there} to format, which does not match the verbs; ${advice}`);
  }

  #wrong(what: string): Problem {
    return new Problem("InvalidComposition", `${this.#place}: ${what}`);
  }
}

/**
 * Throws Problem("InvalidComposition") if the verbs do not take exactly `args` values, or a verb does not exist. The returned function
 * throws Problem("InvalidValue") where Go would print an error into the text, such as `%!d(string=x)`.
 */
export function compileFormat(fmt: string, args: number, place: string): (values: readonly JsonValue[]) => string {
  const format = compileGoFormat(fmt, args, place);
  return (values) => format(values.map(fromJson)).toWellFormed();
}

/** Like `compileFormat`, for values within a chain of transforms. */
export function compileGoFormat(fmt: string, args: number, place: string): (values: readonly GoValue[]) => string {
  const parts = new Parser(fmt.toWellFormed(), args, place).parse();
  return (values) => {
    const to = new TextBuilder();
    for (const part of parts) {
      if (typeof part === "string") to.add(part);
      else print(values[part.value] ?? null, directiveOf(part, values), to);
    }
    return to.toString();
  };
}

const PLAIN = directiveOf({ verb: "v", flags: "", width: undefined, precision: undefined, value: 0 }, []);

/** A value as `%v` prints it. */
export function plainText(value: GoValue): string {
  if (typeof value === "string") return value;
  const to = new TextBuilder();
  print(value, PLAIN, to);
  return to.toString();
}

function directiveOf({ verb, flags, ...counts }: ParsedDirective, values: readonly GoValue[]) {
  const isV = verb === "v";
  const [width, precision] = [countOf(counts.width, values), countOf(counts.precision, values)];
  if (precision !== undefined && precision < 0) throw wrongCount();
  const isNegative = width !== undefined && width < 0;
  return {
    verb,
    minus: flags.includes("-") || isNegative,
    // %+v differs from %v only for structs, which JSON does not have.
    plus: flags.includes("+") && !isV,
    sharp: flags.includes("#") && !isV,
    space: flags.includes(" "),
    zero: flags.includes("0") && !isNegative,
    /** Whether it is `%#v`. */
    goSyntax: flags.includes("#") && isV,
    width: width === undefined ? undefined : Math.abs(width),
    precision,
  };
}

function countOf(count: Count | undefined, values: readonly GoValue[]): number | undefined {
  if (typeof count !== "object") return count;
  const value = values[count.from];
  if (typeof value !== "bigint" || value > MAX_COUNT || value < -MAX_COUNT) throw wrongCount();
  return Number(value);
}

const wrongCount = () =>
  invalid(
    `the width or precision that * takes is not a whole number of at most ${MAX_COUNT}; a precision is not negative`,
  );
