/** Quotes strings and characters like Go's strconv. */
import { isRawByte } from "./value.ts";

/** JavaScript's Unicode is newer than Go's, so it has some more characters. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const MAX_RUNE = 0x10ffffn;
const REPLACEMENT = 0xfffd;

const NAMED: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

export const isPrintable = (character: string): boolean => PRINTABLE.test(character);

export function quote(text: string, isAscii: boolean): string {
  return `"${Array.from(text, (character) => escaped(character, '"', isAscii)).join("")}"`;
}

export function quoteCharacter(character: string, isAscii: boolean): string {
  return `'${escaped(character, "'", isAscii)}'`;
}

/** The character of a number; the replacement character if there is none. */
export function characterOf(value: bigint): string {
  const isSurrogate = value >= 0xd800n && value <= 0xdfffn;
  return String.fromCodePoint(value < 0n || value > MAX_RUNE || isSurrogate ? REPLACEMENT : Number(value));
}

/** Whether a string can be written in backquotes unchanged. */
export function canBackquote(text: string): boolean {
  return text.isWellFormed() && !/[^\P{Cc}\t]|[`\u007f\ufeff]/u.test(text.replace(/[\u0080-\u009f]/g, ""));
}

function escaped(character: string, mark: string, isAscii: boolean): string {
  const code = character.codePointAt(0) as number;
  if (isRawByte(code)) return `\\x${(code & 0xff).toString(16)}`;
  if (character === mark || character === "\\") return `\\${character}`;
  if ((!isAscii || code < 0x80) && isPrintable(character)) return character;
  const named = NAMED[character];
  if (named !== undefined) return named;
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}
