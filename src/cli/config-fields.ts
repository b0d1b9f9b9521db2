/** Reads fields of the configuration. Each function throws an Error that names the field and what is wrong with it. */
import { isObject } from "../apimachinery/json.ts";
import { suggestNames } from "../apimachinery/suggest-names.ts";

type Fields = Record<string, unknown>;

export function fieldsOf(value: unknown, at: string, known: readonly string[]): Fields {
  const where = at === "" ? "the configuration" : at;
  if (!isObject(value)) throw new Error(`${where}: must be an object`);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown === undefined) return value as Fields;
  const field = at === "" ? unknown : `${at}.${unknown}`;
  throw new Error(`${field}: unknown field; ${suggestNames(where, unknown, known)}`);
}

export function listOf<T>(value: unknown, at: string, each: (item: unknown, at: string) => T): T[] {
  if (!Array.isArray(value)) throw new Error(`${at}: must be a list`);
  return value.map((item, n) => each(item, `${at}[${n}]`));
}

/** Globs or names. The empty string means the core group. */
export function textsOf(value: unknown, at: string): string[] {
  return listOf(value, at, (item, where) => {
    if (typeof item !== "string") throw new Error(`${where}: must be a string`);
    return item;
  });
}

/** Undefined for a missing field. */
export function flagOf(value: unknown, at: string): boolean | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  throw new Error(`${at}: must be true or false`);
}
