/** Escapes a text for other languages, so that it means exactly this text there. */
import { stringifyJson } from "../apimachinery/json.ts";
import { Problem } from "../apimachinery/problem.ts";

/** In the order of the replacements: `&` first, because all others contain it. */
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
/** All characters of XML 1.0. */
const XML = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u;
const CONTROL = /(?!\t)\p{Cc}/u;
/** Contains nothing special for any reader of ini files. */
const PLAIN = /^[^\s#;'"`\\](?:[^#;'"`\\]*[^\s#;'"`\\])?$/;

export const INI_QUOTES = ["'", '"', "`", '"""'];

export const invalidText = (subject: string, why: string) =>
  new Problem("InvalidValue", `${subject}: the string ${why}`);

/** For text and attributes. Whitespace that an XML reader would normalize becomes character references. */
export function toXml(text: string, subject: string): string {
  if (!XML.test(text)) throw invalidText(subject, "has a character that XML does not allow");
  return ENTITIES.reduce((escaped, [character, entity]) => swap(escaped, character, entity), text);
}

/** Replaces each occurrence: faster than `replaceAll` for a million of them, and `$` is not special. */
export const swap = (text: string, from: string, to: string): string => text.split(from).join(to);

/** For use inside the quotes of a JSON text. */
export const toJsonText = (text: string): string => stringifyJson(text).slice(1, -1);

/** One word of a POSIX shell. */
export function toShell(text: string, subject: string): string {
  if (text.includes("\0")) throw invalidText(subject, "has a NUL, which no shell accepts");
  return `'${swap(text, "'", "'\\''")}'`;
}

/** Unchanged if all readers agree on its meaning, else in the quotes that the reader knows. */
export function toIni(text: string, quote: string, subject: string): string {
  if (CONTROL.test(text))
    throw invalidText(subject, "has a line break or control character, which is not possible in an ini file");
  if (PLAIN.test(text)) return text;
  const isEscape = quote === '"' && text.includes("\\");
  if (isEscape || `${text}${quote.slice(1)}`.includes(quote))
    throw invalidText(
      subject,
      `can't be quoted with ${quote}: it contains ${isEscape ? "a backslash" : "these quotes"}`,
    );
  return `${quote}${text}${quote}`;
}
