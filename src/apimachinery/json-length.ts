/** Measures a value without printing it. Pure. */
import type { JsonValue } from "./objects.ts";

/** About the number of characters of a value as JSON: escapes count as the characters that they represent. Stops when that is more than `most`. */
export function jsonLength(value: JsonValue | undefined, most = Number.POSITIVE_INFINITY): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return String(value).length;
  let length = 2;
  if (Array.isArray(value))
    for (const each of value) {
      length += jsonLength(each, most - length) + 1;
      if (length > most) return length;
    }
  else
    for (const key in value) {
      length += key.length + 4 + jsonLength(value[key], most - length);
      if (length > most) return length;
    }
  return length;
}
