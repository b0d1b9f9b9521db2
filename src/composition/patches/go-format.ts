/** Compiles the formats of compositions, which are those of Go's fmt. */
import type { JsonValue } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { fromJson, type GoValue, invalid, TextBuilder } from "./go/value.ts";
import { type Directive, isVerb, print, VERBS } from "./go/verbs.ts";

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

/** Throws Problem("InvalidComposition") unless the directives take exactly so many values, with existing verbs. */
function parseFormat(fmt: string, values: number, place: string): (string | ParsedDirective)[] {
  return new Parser(fmt, values, place).parse();
}

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
  const parts = parseFormat(fmt.toWellFormed(), args, place);
  return (values) => {
    const to = new TextBuilder();
    for (const part of parts) {
      if (typeof part === "string") to.add(part);
      else print(values[part.value] ?? null, directiveOf(part, values), to);
    }
    return to.toString();
  };
}

const PLAIN: Directive = directiveOf({ verb: "v", flags: "", width: undefined, precision: undefined, value: 0 }, []);

/** A value as `%v` prints it. */
export function plainText(value: GoValue): string {
  if (typeof value === "string") return value;
  const to = new TextBuilder();
  print(value, PLAIN, to);
  return to.toString();
}

function directiveOf({ verb, flags, ...counts }: ParsedDirective, values: readonly GoValue[]): Directive {
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
