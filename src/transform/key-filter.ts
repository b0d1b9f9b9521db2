/** Filters the keys of a source by the regular expressions of a field: `include` and `exclude`. Pure. */
import type { Field } from "../api/binding.ts";
import type { Effort } from "../apimachinery/glob.ts";
import { compilePattern, type Pattern } from "../apimachinery/pattern.ts";
import { Problem } from "../apimachinery/problem.ts";

/** A key must match at least one of `include` and none of `exclude`. */
export type KeyFilter = Pick<NonNullable<Field["from"]>, "include" | "exclude">;

/** In instructions times characters: about 25 ms, at most 80 ms. */
const MAX_EFFORT = 2_000_000;

export const newFilterEffort = (): Effort => ({ left: MAX_EFFORT });

const WRONG = {
  Invalid: "is not a regular expression of RE2; see https://golang.org/s/re2syntax",
  TooLarge: "the regular expression is too large; shorten it, or use smaller numbers in braces",
  TooMany: "the regular expressions up to this one are too large together; write fewer or shorter ones",
};

/**
 * Whether a key passes. Throws Problem("InvalidBinding") for an invalid pattern, with its position below `place`; the
 * returned function throws it if too little effort is left.
 */
export function keyFilter(filter: KeyFilter, place: string, effort: Effort): (key: string) => boolean {
  const { include, exclude } = filter;
  if (include === undefined && exclude === undefined) return () => true;
  const included = compiled(include, `${place}.include`, effort);
  const excluded = compiled(exclude, `${place}.exclude`, effort);
  const isFound = (patterns: readonly Pattern[], key: string) =>
    patterns.some((pattern) => {
      const found = pattern.isFoundIn(key, effort);
      if (found !== undefined) return found;
      const what = `matching include and exclude with all keys of the source takes too long; write fewer or simpler regular expressions`;
      throw new Problem("InvalidBinding", { at: [place], what }, "OnChange");
    });
  return (key) => (include === undefined || isFound(included, key)) && !isFound(excluded, key);
}

function compiled(texts: readonly string[] = [], place: string, effort: Effort): Pattern[] {
  return texts.map((text, at) => {
    // Only the cache keeps patterns: with patterns in each binding, memory would be unlimited.
    const pattern = compilePattern(text, effort) ?? "TooMany";
    if (typeof pattern === "string")
      throw new Problem("InvalidBinding", { at: [`${place}[${at}]`], what: WRONG[pattern] });
    return pattern;
  });
}
