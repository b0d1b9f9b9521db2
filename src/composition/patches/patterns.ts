/** Compiles and matches the regular expressions of transforms, up to the limit of the work for a binding. */
import { compilePattern, type Pattern } from "../../apimachinery/pattern.ts";
import { invalid } from "./go/value.ts";
import { mistake } from "./options.ts";
import type { Work } from "./work.ts";

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
export function groupIn(pattern: string, text: string, group: number, { effort }: Work): string | null {
  // The cache of patterns stores it while it is used. If each composition stored its own, the memory would be unlimited.
  const compiled = compilePattern(pattern, effort);
  const found = typeof compiled === "object" ? compiled.groupIn(text, group, effort) : undefined;
  if (found === undefined) throw invalid("the string is too long to match the regular expressions");
  return found;
}
