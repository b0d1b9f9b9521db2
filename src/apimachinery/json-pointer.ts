/** Parses, prints and follows JSON pointers (RFC 6901). */

import type { JsonValue } from "./objects.ts";
import { quoted } from "./objects.ts";
import { Problem } from "./problem.ts";

/** Throws Problem("InvalidPath"). */
export function parsePointer(text: string): readonly string[] {
  if (!/^(?:\/(?:[^~/]|~[01])*)*$/.test(text)) {
    const message = `${quoted(text)} is not a JSON pointer; write it as /spec/bucketName, with ~1 for / and ~0 for ~ in a name`;
    throw new Problem("InvalidPath", message);
  }
  return text
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The text that `parsePointer` reads as these tokens. */
export const pointerTo = (tokens: readonly string[]): string =>
  tokens.map((token) => `/${token.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** The value at a pointer, or undefined. Only own properties count. */
export function pointAt(value: JsonValue, tokens: readonly string[]): JsonValue | undefined {
  let at: JsonValue | undefined = value;
  for (const token of tokens) {
    if (Array.isArray(at)) at = /^(?:0|[1-9]\d*)$/.test(token) ? at[Number(token)] : undefined;
    else if (typeof at === "object" && at !== null && Object.hasOwn(at, token)) at = at[token];
    else return undefined;
  }
  return at;
}
