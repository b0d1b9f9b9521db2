/** Writes JSON like Go's encoding/json: keys sorted by their bytes, and characters with a meaning in HTML escaped. */
import { compareKeys, type GoValue, invalid } from "./value.ts";

const ESCAPED = /[<>&\u2028\u2029]/g;
const RAW_BYTE = /[\udc80-\udcff]/u;

/** Throws Problem("InvalidValue") for infinity and NaN. */
export function toJsonText(value: GoValue): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number") return numberText(value);
  if (Array.isArray(value)) return `[${value.map(toJsonText).join(",")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  const keys = Object.keys(value).sort(compareKeys);
  return `{${keys.map((key) => `${quoted(key)}:${toJsonText(value[key] as GoValue)}`).join(",")}}`;
}

function numberText(value: number): string {
  if (!Number.isFinite(value)) throw invalid("the number is infinite or not a number, which JSON can't hold");
  return Object.is(value, -0) ? "-0" : String(value);
}

function quoted(text: string): string {
  // Go writes a byte that is not UTF-8 as the escaped replacement character.
  const parts = text.isWellFormed() ? [text] : text.split(RAW_BYTE);
  return `"${parts.map((part) => JSON.stringify(part).slice(1, -1).replace(ESCAPED, unicode)).join("\\ufffd")}"`;
}

const unicode = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
