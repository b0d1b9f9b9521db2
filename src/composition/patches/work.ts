/** Limits the cost of composing one binding: a claim chooses the size of the values that patches read. */
import type { Effort } from "../../apimachinery/glob.ts";
import { Problem } from "../../apimachinery/problem.ts";
import type { GoValue } from "./go/value.ts";

/** Objects, lists and single values that are read, computed or written: some 20 ms. */
const MAX_VALUES = 10_000;
/** Characters that are read, computed or written. The API server accepts no binding with half of them. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
/** For regular expressions, in instructions times characters: some 60 ms, and 200 at worst. */
const MAX_EFFORT = 5_000_000;
/** Comparisons of two paths: some 50 ms. */
const MAX_COMPARISONS = 200_000;

export class Work {
  readonly effort: Effort = { left: MAX_EFFORT };
  #values = MAX_VALUES;
  #characters = MAX_CHARACTERS;
  #comparisons = MAX_COMPARISONS;

  /** Call it before a value is read, or written so many times, and for the result of a transform. Throws Problem("TooLarge"). */
  value(value: GoValue, times = 1): void {
    this.#values -= times;
    if (typeof value === "string") this.#characters -= times * value.length;
    if (this.#values < 0) throw tooLarge(`process more than ${MAX_VALUES} values`);
    if (this.#characters < 0) throw tooLarge(`process more than ${MAX_CHARACTERS} characters`);
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) for (const each of value) this.value(each, times);
    else
      for (const key in value) {
        this.#characters -= times * key.length;
        this.value(value[key] as GoValue, times);
      }
  }

  /** Call it before paths are compared. Throws Problem("TooLarge"). */
  compare(paths: number): void {
    this.#comparisons -= paths;
    if (this.#comparisons < 0) throw tooLarge("write too many fields");
  }
}

const tooLarge = (what: string) =>
  new Problem("TooLarge", `the patches of the binding ${what}; copy smaller fields of the claim`);
