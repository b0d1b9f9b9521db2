/** Identifies what was written, in little memory: the author of a claim may choose its size. It is kept in memory only. */
import { createHash } from "node:crypto";
import { isObject, stringifyJson } from "../apimachinery/json.ts";

/** The same text for the same JSON, whatever the order of its keys. */
export const revisionOf = (value: object): string =>
  createHash("sha256")
    .update(stringifyJson(sorted(value)))
    .digest("base64url");

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}
