/**
 * Finds values in the text of JSON without parsing it, so that large parts which are not needed cost no memory. The position after a value
 * that does not end is beyond the text. For other text that is not JSON, positions have no meaning, but every function ends.
 */
import { endOfString, parseShallow, set } from "./json.ts";
import type { JsonObject, JsonValue } from "./objects.ts";

const [QUOTE, COMMA, COLON, LIST, LIST_END, OBJECT, OBJECT_END] = [34, 44, 58, 91, 93, 123, 125];

const isSpace = (code: number) => code === 32 || (code >= 9 && code <= 13);

/** The position of the first value at or after `at`. */
export function startOfValue(text: string, at = 0): number {
  let start = at;
  for (let code = text.charCodeAt(start); isSpace(code) || code === COLON; code = text.charCodeAt(start)) start++;
  return start;
}

/** The position after the value that begins at `start`. */
export function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start) + 1;
  const isNested = first === OBJECT || first === LIST;
  let level = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === OBJECT || code === LIST) level++;
    else if (code === OBJECT_END || code === LIST_END) {
      if (!isNested) return at;
      if (--level === 0) return at + 1;
    } else if (!isNested && (code === COMMA || isSpace(code))) return at;
  }
  return isNested ? text.length + 1 : text.length;
}

export const isObjectAt = (text: string, at: number): boolean => text.charCodeAt(at) === OBJECT;
export const isListAt = (text: string, at: number): boolean => text.charCodeAt(at) === LIST;

/**
 * Calls `each` with the key, the position of the value, and the position of the key of each member of the value at `start`, if it is an
 * object. `each` returns the position after the value of the member, and so does this for the value.
 */
export function members(text: string, start: number, each: (key: string, at: number, keyAt: number) => number): number {
  if (!isObjectAt(text, start)) return endOfValue(text, start);
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === OBJECT_END) return at + 1;
    if (code !== QUOTE) continue;
    const end = endOfString(text, at);
    const value = startOfValue(text, end + 1);
    at = Math.max(value, each(keyOf(text.slice(at, end + 1)), value, at)) - 1;
  }
  return text.length + 1;
}

/** The same for the value of one key. */
export const member = (text: string, start: number, name: string, each: (at: number) => number): number =>
  members(text, start, (key, at) => (key === name ? each(at) : endOfValue(text, at)));

/** The same for the position of each element of a list. */
export function elements(text: string, start: number, each: (at: number) => number): number {
  if (!isListAt(text, start)) return endOfValue(text, start);
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === LIST_END) return at + 1;
    if (code === COMMA || isSpace(code)) continue;
    at = Math.max(at + 1, each(at)) - 1;
  }
  return text.length + 1;
}

/** The key in its quotes. The API server escapes few characters of keys. */
function keyOf(quoted: string): string {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted);
  } catch {
    return quoted;
  }
}

/** A part of a text that begins at `start`, with parts of it replaced, from the first to the last. */
export class Edited {
  readonly #text: string;
  #kept = "";
  #from: number;

  constructor(text: string, start = 0) {
    this.#text = text;
    this.#from = start;
  }

  replace(start: number, end: number, by: string): void {
    this.#kept += this.#text.slice(this.#from, start) + by;
    this.#from = end;
  }

  upTo(end: number): string {
    return this.#kept + this.#text.slice(this.#from, end);
  }
}

/** The most characters that are parsed at once. Some texts of this length take 10 ms: those with thousands of objects of other keys. */
const MAX_PART = 32 * 1024;

/** Parses text without deep levels in steps of some milliseconds. Throws SyntaxError. */
export function* parseInParts(
  text: string,
  start = startOfValue(text),
  end = text.length,
): Generator<void, JsonValue, void> {
  const isList = isListAt(text, start);
  if (end - start <= MAX_PART || !(isList || isObjectAt(text, start))) {
    yield;
    return parseShallow(text.slice(start, end));
  }
  const list: JsonValue[] = [];
  const object: JsonObject = {};
  const found = partsOf(text, start);
  if (text.slice(found.end, end).trim() !== "") throw new SyntaxError("text after the end");
  for (const { key, from, to, isLarge } of found.parts) {
    if (isLarge) {
      const value = yield* parseInParts(text, from, to);
      if (isList) list.push(value);
      else set(object, key, value);
      continue;
    }
    yield;
    const part = text.slice(from, to);
    if (isList) list.push(...(parseShallow(`[${part}]`) as JsonValue[]));
    else {
      const some = parseShallow(`{${part}}`) as JsonObject;
      for (const each in some) set(object, each, some[each] as JsonValue);
    }
  }
  return isList ? list : object;
}

export interface Part {
  /** Of the value of a large member. */
  key: string;
  from: number;
  to: number;
  /** It is one value. Otherwise it is some elements or members, with commas between them. */
  isLarge: boolean;
}

/** The parts of the list or object at `start`, and the position after it. Adds the length of each value to `lengths`. */
export function partsOf(text: string, start: number, lengths: number[] = []): { parts: Part[]; end: number } {
  const parts: Part[] = [];
  const add = (key: string, from: number, at: number) => {
    const to = endOfValue(text, at);
    lengths.push(to - at);
    const last = parts.at(-1);
    if (to - at > MAX_PART) parts.push({ key, from: at, to, isLarge: true });
    else if (last !== undefined && !last.isLarge && to - last.from <= MAX_PART) last.to = to;
    else parts.push({ key, from, to, isLarge: false });
    return to;
  };
  const end = isListAt(text, start)
    ? elements(text, start, (at) => add("", at, at))
    : members(text, start, (key, at, keyAt) => add(key, keyAt, at));
  if (end > text.length) throw new SyntaxError("a list or object does not end");
  return { parts, end };
}
