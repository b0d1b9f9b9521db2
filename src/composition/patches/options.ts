/** Checks the options of patches and transforms: unknown options, required options, and types. Errors contain the place. */
import { isObject } from "../../apimachinery/json.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { similarName, suggestNames } from "../../apimachinery/suggest-names.ts";

/** A part of a composition as its author wrote it, with its place. */
export class Options {
  readonly place: string;
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(fields: unknown, place: string) {
    if (!isObject(fields)) throw mistake(place, "must be an object; write fields such as type below it");
    this.#fields = fields;
    this.place = place;
  }

  get(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? (this.#fields[name] ?? undefined) : undefined;
  }

  get keys(): string[] {
    return Object.keys(this.#fields);
  }

  /** Throws unless every field has one of these names. `known` are the names for suggestions. */
  only(names: readonly string[], known: readonly string[] = names): this {
    for (const key of this.keys) {
      if (names.includes(key) || this.get(key) === undefined) continue;
      const path = `${this.place}.${key}`;
      if (known.includes(key)) throw mistake(path, `is not allowed here; remove it, or write ${names.join(", ")}`);
      throw mistake(path, `unknown field; ${suggestNames(this.place, key, known)}`);
    }
    return this;
  }

  below(name: string, example: string): Options {
    if (this.get(name) === undefined) throw this.missing(name, example);
    return new Options(this.get(name), `${this.place}.${name}`);
  }

  text(name: string, example: string): string {
    const value = this.get(name);
    if (value === undefined) throw this.missing(name, example);
    if (typeof value !== "string") throw this.wrong(name, `must be a string; write, for example, ${example}`);
    return value.toWellFormed();
  }

  /** One of these words. */
  choice<T extends string>(name: string, words: readonly T[], usual?: T): T {
    const value = this.get(name) ?? usual;
    if (value === undefined) throw this.missing(name, `one of ${words.join(", ")}`);
    const word = words.find((each) => each === value);
    if (word !== undefined) return word;
    const similar = similarName(String(value), words);
    throw this.wrong(
      name,
      `must be one of ${words.join(", ")}${similar === undefined ? "" : `; did you mean ${similar}?`}`,
    );
  }

  int64(name: string): bigint {
    const value = this.get(name);
    if (value === undefined) throw this.missing(name, "a whole number");
    const isWhole = typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
    if (!isWhole || BigInt.asIntN(64, BigInt(value)) !== BigInt(value)) {
      throw this.wrong(name, "must be a whole number of 64 bits; write, for example, 1024");
    }
    return BigInt(value);
  }

  list(name: string): unknown[] {
    const value = this.get(name) ?? [];
    if (!Array.isArray(value)) throw this.wrong(name, "must be a list");
    return value;
  }

  missing(name: string, example: string): Problem {
    return this.wrong(name, `is missing; write ${example}`);
  }

  wrong(name: string, what: string): Problem {
    return mistake(`${this.place}.${name}`, what);
  }
}

/** A mistake at a place of the composition, and what to write instead. */
export function mistake(place: string, what: string): Problem {
  return new Problem("InvalidComposition", { at: [place], what });
}
