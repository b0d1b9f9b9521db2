/** Escapes a text for another language, so that it stays what it is there. */
import { stringifyJson } from "../apimachinery/json.ts";
import { Problem } from "../apimachinery/problem.ts";

/** In the order in which they are put in: `&` stands in all others. */
const ENTITIES: readonly (readonly [string, string])[] = [
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
  ["'", "&apos;"],
  ["\t", "&#9;"],
  ["\n", "&#10;"],
  ["\r", "&#13;"],
];
/** All that XML 1.0 has a place for. */
const XML = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;
const CONTROL = /(?!\t)\p{Cc}/u;
/** Means nothing to any reader of ini files. */
const PLAIN = /^[^\s#;'"`\\](?:[^#;'"`\\]*[^\s#;'"`\\])?$/;

export const INI_QUOTES = ["'", '"', "`", '"""'];

export const invalidText = (subject: string, why: string) => new Problem("InvalidValue", `${subject}: the text ${why}`);

/** For text and attributes. Blanks that a reader of XML would change are written by number. */
export function toXml(text: string, subject: string): string {
  if (!XML.test(text)) throw invalidText(subject, "has a character that XML can't hold");
  return ENTITIES.reduce((made, [character, entity]) => swap(made, character, entity), text);
}

/** Every one of a text in another by a third: faster than `replaceAll` where there are a million, and `$` means nothing. */
export const swap = (text: string, from: string, to: string): string => text.split(from).join(to);

/** For within the quotes of a JSON text. */
export const toJsonText = (text: string): string => stringifyJson(text).slice(1, -1);

/** One word of a POSIX shell. */
export function toShell(text: string, subject: string): string {
  if (text.includes("\0")) throw invalidText(subject, "has a NUL, which no shell takes");
  return `'${swap(text, "'", "'\\''")}'`;
}

/** As it is where that means the same to every reader, else in the quotes that the reader knows. */
export function toIni(text: string, quote: string, subject: string): string {
  if (CONTROL.test(text))
    throw invalidText(subject, "has a line break or control character, which a value of an ini file can't");
  if (PLAIN.test(text)) return text;
  const isEscape = quote === '"' && text.includes("\\");
  if (isEscape || `${text}${quote.slice(1)}`.includes(quote))
    throw invalidText(subject, `can't stand between ${quote}: it has ${isEscape ? "a backslash" : "them"} in it`);
  return `${quote}${text}${quote}`;
}
