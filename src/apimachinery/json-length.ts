/** Measures a value without printing it. Pure. */
import type { JsonValue } from "./objects.ts";

/** About the number of characters of a value as JSON: escapes count as the characters that they represent. */
export function jsonLength(value: JsonValue | undefined): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return String(value).length;
  let length = 2;
  if (Array.isArray(value)) for (const each of value) length += jsonLength(each) + 1;
  else for (const key in value) length += key.length + 4 + jsonLength(value[key]);
  return length;
}
