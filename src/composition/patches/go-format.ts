/** Compiles the formats of compositions, which are those of Go's fmt. */
import type { JsonValue } from "../../apimachinery/objects.ts";
import { type Count, MAX_COUNT, type ParsedDirective, parseFormat } from "./go/directives.ts";
import { fromJson, type GoValue, invalid, TextBuilder } from "./go/value.ts";
import { type Directive, print } from "./go/verbs.ts";

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
