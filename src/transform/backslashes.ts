/**
 * Finds expressions with backslashes before them whose author may mean something else than what Handlebars writes: `\{{a.b}}` is the text
 * `{{a.b}}`, and `\\{{a.b}}` is one backslash and the value. Pure.
 */
import { Problem } from "../apimachinery/problem.ts";
import { placeOf, quote } from "./foreign-templates.ts";

/** Each character is matched in one way only, so that a long text takes one pass. */
const ESCAPED = /(?<!\\)(\\+)(\{\{\{?[^{}]*\}\}\}?)/g;
/** The beginning of a path, which is the name of a source. */
const FIRST_NAME = /(?:^|[\s({])([A-Za-z][\w-]*)(?=\.[\w[])/g;
const JSON_TEXT = /^\s*(?:\{(?!\{)|\[)/;

/** At most one warning for each of the two mistakes. */
export function backslashWarnings(text: string, sources: readonly string[]): Problem[] {
  if (!text.includes("\\{{")) return [];
  const names = new Set(sources);
  const isJson = JSON_TEXT.test(text);
  const found = new Map<string, Problem>();
  for (const { 0: whole, 1: backslashes = "", 2: expression = "", index } of text.matchAll(ESCAPED)) {
    const { length } = backslashes;
    const namesSource = [...expression.matchAll(FIRST_NAME)].some(([, name = ""]) => names.has(name));
    const before = text[index - 1] ?? " ";
    // A share such as \\server, and a backslash in JSON, need an even number.
    const isOdd = isJson ? length % 2 === 0 : length === 2 && !/\w/.test(before);
    const warning =
      length > 1
        ? isOdd &&
          `${length} backslashes before {{ are written as ${length - 1}, because the last one is an escape; for ${length} backslashes and the value, write ${quote(`\\${whole}`)}`
        : namesSource &&
          `${quote(whole)} is written as the text ${quote(expression)}, because \\{{ is the text {{; for a backslash and the value, write ${quote(`\\${whole}`)}`;
    const kind = length > 1 ? "many" : "one";
    if (namesSource && warning && !found.has(kind))
      found.set(kind, new Problem("InvalidTemplate", `template ${placeOf(text, index)}: ${warning}`));
  }
  return [...found.values()];
}
