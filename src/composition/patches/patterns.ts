/** Compiles and matches the regular expressions of transforms. The cost of one transform of one value is limited. */
import { compilePattern, type Pattern } from "../../apimachinery/pattern.ts";
import { invalid } from "./go/value.ts";
import { mistake } from "./options.ts";

/** In instructions times characters: some 60 ms, and 200 at worst. */
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

/** Matches texts against checked patterns, up to a limit of effort. */
export class Matcher {
  readonly #effort = { left: MAX_EFFORT };

  isFoundIn(pattern: string, text: string): boolean {
    return this.groupIn(pattern, text, 0) !== null;
  }

  /** Throws Problem("InvalidValue") if the text is too long for the patterns. */
  groupIn(pattern: string, text: string, group: number): string | null {
    // The cache of patterns stores it while it is used. If each composition stored its own, the memory would be unlimited.
    const compiled = compilePattern(pattern, this.#effort);
    const found = typeof compiled === "object" ? compiled.groupIn(text, group, this.#effort) : undefined;
    if (found === undefined) throw invalid("the string is too long to match the regular expressions");
    return found;
  }
}
