/** Explains expressions of other template languages, with the same expression in Handlebars, and backslashes before expressions. Pure. */
import { isObject } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { similarName } from "../apimachinery/suggest-names.ts";
import { below } from "./path-advice.ts";
import { WithoutKey } from "./template-expression.ts";
import { spell } from "./template-value.ts";

/**
 * `{{ body }}`, also with three braces, but no text that begins with `\{{`. These patterns match each character in one way only, so that a
 * long text takes one pass.
 */
const EXPRESSION = /(?<!(?<!\\)\\)\{\{\{?([^{}]*)\}\}\}?/g;
/** A path that begins with a dot, as in Go: `.bucket.key`, `$.bucket.key`, `$key`. */
const GO_PATH = /(?:^|[\s(])(?:\$?\.|\$)([\w-]+(?:\.[\w-]+)*)/;
/** `${name}` and `$(name)`, which other programs replace. A call such as `$(date -u)` is none. */
const PLACEHOLDER = /\$(?:\{\s*\.?([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}|\(\s*\.?([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\))/;
/** Functions of Go templates, and the helper that does the same. */
const HELPERS: Readonly<Record<string, string>> = {
  b64enc: "base64",
  b64dec: "base64decode",
  base64decode: "base64decode",
  lower: "lower",
  toJson: "json",
  toYaml: "yaml",
  trim: "trim",
  upper: "upper",
  urlquery: "urlencode",
};
/** Keywords of Go that no helper replaces. */
const NO_COUNTERPART = /^(?:range|with|define|template|include|block)\b/;
/** A key in brackets without a dot before them, and the key in its quotes. */
const SUBSCRIPT = /^([\w-]+)\s*\[([^\]]*)\]$/;
const QUOTED_KEY = /^["']?([^"']+)["']?$/;
/** The beginning of an expression that names a source. */
const NAMES_SOURCE =
  /(?:\{\{-?\s*(?:[A-Za-z]\w*\s+)?|\$\{\s*|\$\(\s*)\.?([A-Za-z][\w-]*)\.[\w[][^\s(){}]*(?:\s*(?:\}{1,3}|\)))?/g;
const MAX_QUOTED = 60;

/**
 * Throws Problem("InvalidTemplate") for a template without any {{ }} that has `${name}` or `$(name)`: it would be written as it is, and
 * its author expects a value. A template with an expression, or with a comment, may have them.
 */
export function assertNoPlaceholder(text: string, sources: readonly string[]): void {
  const found = text.includes("{{") ? null : PLACEHOLDER.exec(text);
  if (found === null) return;
  const write = handlebarsOf((found[1] ?? found[2]) as string, sources);
  const at = placeOf(text, found.index);
  const message = `template ${at}: ${quote(found[0])} would be written as it is, because a template has values in {{ }}; write ${write}. If you mean ${quote(found[0])} itself, add a comment to the template: {{! literal }}`;
  throw new Problem("InvalidTemplate", message);
}

/** Throws Problem("InvalidTemplate") if a string of the manifest refers to a source: nothing replaces it there. */
export function assertNoReference(value: JsonValue, sources: readonly string[], at = ""): void {
  if (typeof value === "string") {
    const found = [...value.matchAll(NAMES_SOURCE)].find(([, name = ""]) => sources.includes(name));
    if (found === undefined) return;
    const message = `${at} of the manifest: ${quote(found[0])} would be written as it is, because a manifest has no templates; add ${at} to fields, with this text as its template, or rename the source ${found[1]} if you mean the text itself`;
    throw new Problem("InvalidTemplate", message);
  }
  if (Array.isArray(value))
    for (const [index, each] of value.entries()) assertNoReference(each, sources, below(at, { kind: "index", index }));
  else if (isObject(value))
    for (const [key, each] of Object.entries(value)) assertNoReference(each, sources, below(at, { kind: "key", key }));
}

/**
 * Explains the first expression of another language in a template, or the one without a source that `mistake` is about; undefined if it
 * has none. The template is not valid.
 */
export function foreignExpression(text: string, sources: readonly string[], mistake?: Problem): Problem | undefined {
  for (const [expression, trimsBefore, body = "", trimsAfter, index] of expressionsIn(text)) {
    const plain = body.replaceAll(/"[^"]*"|'[^']*'/g, '""');
    const [, path] = GO_PATH.exec(plain) ?? [];
    const isGo = path !== undefined || trimsBefore || trimsAfter || plain.includes("|") || plain === "end";
    const [, source, inner = ""] = SUBSCRIPT.exec(body) ?? [];
    const [, key] = QUOTED_KEY.exec(inner.trim()) ?? [];
    const isKey = mistake instanceof WithoutKey && mistake.named === body && !sources.includes(body);
    const advice = isGo
      ? `is in the syntax of Go, but templates have that of Handlebars; write ${translated(plain, path, sources)}, or \\{{ if you mean the text itself`
      : source !== undefined && key !== undefined
        ? `has no dot before the bracket; write {{${spell([source, key])}}}`
        : isKey
          ? `names a key without its source; write ${handlebarsOf(body, sources)}`
          : undefined;
    if (advice !== undefined)
      return new Problem("InvalidTemplate", `template ${placeOf(text, index)}: ${quote(expression)} ${advice}`);
  }
  return undefined;
}

/** The expressions without the - of Go, which trims spaces before or after them. */
function* expressionsIn(text: string): Generator<[string, boolean, string, boolean, number]> {
  for (const { 0: expression, 1: inner = "", index } of text.matchAll(EXPRESSION)) {
    const trimsBefore = inner.startsWith("-");
    const rest = inner.slice(trimsBefore ? 1 : 0);
    const trimsAfter = rest.endsWith("-");
    yield [expression, trimsBefore, rest.slice(0, trimsAfter ? -1 : undefined).trim(), trimsAfter, index];
  }
}

function translated(body: string, path: string | undefined, sources: readonly string[]): string {
  if (body === "end") return "{{/if}}";
  if (NO_COUNTERPART.test(body)) return "each value by itself, as in {{source.key}}, because templates have no loops";
  const name = path ?? /^[\w-]+(?:\.[\w-]+)+/.exec(body)?.[0];
  if (name === undefined) return "{{source.key}}";
  if (/^if\s/.test(body)) return handlebarsOf(name, sources, (inner) => `#if ${inner}`);
  const [first = "", ...piped] = body.split("|").map((each) => each.trim());
  const calls = [/^[A-Za-z]\w*(?=\s)/.exec(first)?.[0] ?? [], piped].flat().map((call) => HELPERS[call]);
  const known = calls.filter((call) => call !== undefined);
  const call = (inner: string) => known.reduce((sum, each, n) => `${each} ${n === 0 ? sum : `(${sum})`}`, inner);
  const write = handlebarsOf(name, sources, call);
  return known.length === calls.length
    ? write
    : `${write}, and the other functions as helpers, as in {{base64 source.key}}`;
}

/** The expression for `source.key`, or for a key alone. */
function handlebarsOf(name: string, sources: readonly string[], call = (path: string) => path): string {
  const [first = "", ...rest] = name.split(".");
  const [only, ...more] = sources;
  const source = sources.find((each) => each === first) ?? (rest.length > 0 ? similarName(first, sources) : undefined);
  if (source !== undefined) return `{{${call(spell([source, ...(rest.length > 0 ? rest : ["key"])]))}}}`;
  if (only !== undefined && more.length === 0) return `{{${call(spell([only, name]))}}}`;
  return `{{${call(`source.${spell([name])}`)}}}, where source is one of ${sources.join(", ")}`;
}

function placeOf(text: string, index: number): string {
  const before = text.slice(0, index).split("\n");
  return `${before.length}:${(before.at(-1) as string).length + 1}`;
}

const quote = (text: string) => (text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text);

/** Each character is matched in one way only, so that a long text takes one pass. */
const ESCAPED = /(?<!\\)(\\+)(\{\{\{?[^{}]*\}\}\}?)/g;
/** The beginning of a path, which is the name of a source. */
const FIRST_NAME = /(?:^|[\s({])([A-Za-z][\w-]*)(?=\.[\w[])/g;
const JSON_TEXT = /^\s*(?:\{(?!\{)|\[)/;

/**
 * Finds expressions with backslashes before them whose author may mean something else than what Handlebars writes: `\{{a.b}}` is the text
 * `{{a.b}}`, and `\\{{a.b}}` is one backslash and the value. At most one warning for each of the two mistakes.
 */
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
