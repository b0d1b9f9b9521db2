/** Defines the helpers of templates. Their arguments already have the right kinds. */
import { createHash } from "node:crypto";
import { stringify } from "yaml";
import { stringifyJson } from "../apimachinery/json.ts";
import { parsePointer, pointAt } from "../apimachinery/json-pointer.ts";
import { type JsonValue, plainWord } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type Budget, sizeOf } from "./budget.ts";
import { pemBundle } from "./pem.ts";
import { textOf } from "./read.ts";

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

const invalidText = (subject: string, why: string) => new Problem("InvalidValue", `${subject}: the string ${why}`);

/** For text and attributes. Whitespace that an XML reader would normalize becomes character references. */
export function toXml(text: string, subject: string): string {
  if (!XML.test(text)) throw invalidText(subject, "has a character that XML does not allow");
  return ENTITIES.reduce((escaped, [character, entity]) => swap(escaped, character, entity), text);
}

/** Replaces each occurrence: faster than `replaceAll` for a million of them, and `$` is not special. */
const swap = (text: string, from: string, to: string): string => text.split(from).join(to);

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

/**
 * `value`: any value. `document`: any value, with texts parsed. `text`: a text, number or boolean, as text. `bytes`:
 * the bytes of a key or a text. `list`: a list. The others are literals in the template. `word`: a non-empty text.
 * `any`: any text. `count`: a whole number up to 64. `pointer`: a JSON pointer. `quote`: a quote of ini files.
 */
export type ArgumentKind =
  | "value"
  | "document"
  | "text"
  | "bytes"
  | "list"
  | "word"
  | "any"
  | "count"
  | "pointer"
  | "quote";

/** The context of a helper's call. */
interface Call {
  budget: Budget;
  /** Template, line and column, for messages. */
  subject: string;
  /** The arguments may contain a value of a Secret. */
  fromSecret: boolean;
  /** The Problem for a missing value. */
  missing(what: string): Problem;
}

export interface Helper {
  usage: string;
  takes: readonly ArgumentKind[];
  /** Whether the last argument may occur several times, but at least once. */
  repeats?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the arguments are of the kinds that `takes` lists
  make(args: any[], call: Call): JsonValue;
}

const MAX_SPACES = 64;
const ofText = (usage: string, make: (text: string, call: Call) => JsonValue): Helper => ({
  usage,
  takes: ["text"],
  make: ([text], call) => {
    call.budget.work(text.length);
    return make(text, call);
  },
});

export const helpers: ReadonlyMap<string, Helper> = new Map(
  Object.entries({
    base64: ofBytes("base64 source.key", "base64"),
    base64url: ofBytes("base64url source.key", "base64url"),
    base64decode: ofText("base64decode source.key", decode),
    urlencode: ofText("urlencode source.key", (text, { subject }) => {
      if (!text.isWellFormed()) throw invalidText(subject, "contains half a character");
      return [..."!'()*"].reduce(
        (escaped, each) => swap(escaped, each, `%${each.charCodeAt(0).toString(16).toUpperCase()}`),
        encodeURIComponent(text),
      );
    }),
    lower: ofText("lower source.key", (text) => text.toLowerCase()),
    upper: ofText("upper source.key", (text) => text.toUpperCase()),
    trim: ofText("trim source.key", (text) => text.trim()),
    replace: { usage: 'replace source.key "from" "to"', takes: ["text", "word", "any"], make: replace },
    split: { usage: 'split source.key ","', takes: ["text", "word"], make: split },
    join: { usage: 'join (split source.key ",") " "', takes: ["list", "any"], make: join },
    concat: { usage: 'concat source.user ":" source.password', takes: ["text"], repeats: true, make: concat },
    indent: { usage: "indent source.key 4", takes: ["text", "count"], make: indent },
    jsontext: ofText("jsontext source.key", (text, { budget }) => charged(toJsonText(text), budget)),
    xml: ofText("xml source.key", (text, { budget, subject }) => charged(toXml(text, subject), budget)),
    shell: ofText("shell source.key", (text, { budget, subject }) => charged(toShell(text, subject), budget)),
    ini: { usage: `ini source.key "'"`, takes: ["text", "quote"], make: ini },
    sha256sum: ofText("sha256sum source.key", sha256sum),
    pembundle: { usage: "pembundle source.key other.key", takes: ["text"], repeats: true, make: pembundle },
    json: { usage: "json source.key", takes: ["value"], make: ([value], call) => written(value, call, stringifyJson) },
    yaml: {
      usage: "yaml (parse source.key)",
      takes: ["value"],
      make: ([value], call) => written(value, call, toYaml, YAML_TIMES),
    },
    parse: { usage: "parse source.key", takes: ["document"], make: ([value]) => value },
    pointer: { usage: 'pointer source.key "/a/b"', takes: ["document", "pointer"], make: pointer },
    /** The template evaluates it, because its first argument may be missing. */
    default: { usage: 'default source.key "text"', takes: ["value", "value"], make: ([value]) => value },
  } satisfies Record<string, Helper>),
);

const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_SPACES;
const isText = (value: unknown) => typeof value === "string";
const isQuote = (value: unknown) => INI_QUOTES.some((each) => each === value);

/** The kinds of literal arguments: the rule for messages, and a check. */
export const literals: ReadonlyMap<ArgumentKind, { rule: string; fits(value: unknown): boolean }> = new Map([
  ["word", { rule: "a string in quotes, not empty", fits: (value) => isText(value) && value !== "" }],
  ["any", { rule: "a string in quotes", fits: isText }],
  ["count", { rule: `a whole number from 0 to ${MAX_SPACES}`, fits: isCount }],
  ["pointer", { rule: "a JSON pointer in quotes", fits: isText }],
  ["quote", { rule: `one of ${INI_QUOTES.join(" ")} in quotes`, fits: isQuote }],
]);

function ofBytes(usage: string, encoding: "base64" | "base64url"): Helper {
  return {
    usage,
    takes: ["bytes"],
    make: ([bytes]: [Uint8Array], { budget }) => {
      budget.work(bytes.length * 2);
      return Buffer.from(bytes).toString(encoding);
    },
  };
}

/** Accepts both alphabets, with or without padding and line breaks. */
function decode(text: string, { subject }: Call): JsonValue {
  const plain = text.replace(/[\r\n]/g, "");
  const [, body = ""] = /^([A-Za-z0-9+/_-]*)={0,2}$/.exec(plain) ?? [];
  if (body.length % 4 === 1 || (body === "" && plain !== "")) throw invalidText(subject, "is not base64");
  return textOf(Buffer.from(body, "base64url"), `${subject}: the decoded base64`);
}

/** The result may be longer than the input. */
function charged(text: string, budget: Budget): string {
  budget.work(text.length);
  return text;
}

function ini([text, quote]: [string, string], { budget, subject }: Call): JsonValue {
  budget.work(text.length);
  return toIni(text, quote, subject);
}

/** With an unkeyed hash of a secret, any reader could test guesses of the value. */
function sha256sum(text: string, { fromSecret, subject }: Call): JsonValue {
  if (!fromSecret) return createHash("sha256").update(text).digest("hex");
  const message = `${subject}: sha256sum does not accept values of Secrets, because readers of the hash could test guesses of the value; hash a value of a ConfigMap or another object`;
  throw new Problem("InvalidTemplate", message);
}

function pembundle(texts: string[], { budget, subject }: Call): JsonValue {
  // Parsing certificates costs more than copying.
  budget.work(lengthOf(texts) * 16);
  return pemBundle(texts, subject);
}

/** Counts the occurrences of a part in a text, without building a result. */
function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}

const lengthOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);

function replace([text, from, to]: [string, string, string], { budget }: Call): JsonValue {
  const count = countOf(text, from);
  budget.work(text.length + count * Math.max(0, to.length - from.length), count / 8);
  return swap(text, from, to);
}

function split([text, separator]: [string, string], { budget }: Call): JsonValue {
  budget.work(text.length, countOf(text, separator) + 1);
  return text.split(separator);
}

function join([list, separator]: [JsonValue[], string], { budget, subject }: Call): JsonValue {
  if (list.some((each) => each === null || typeof each === "object")) {
    const what = "the list contains objects, lists or nulls, so it can't be joined; join only strings and numbers";
    throw new Problem("TypeMismatch", `${subject}: ${what}`);
  }
  const texts = list.map(String);
  budget.work(lengthOf(texts) + texts.length * separator.length, texts.length);
  return texts.join(separator);
}

/** For use as an argument of another helper: elsewhere, a template concatenates by itself. */
function concat(texts: string[], { budget }: Call): JsonValue {
  budget.work(lengthOf(texts));
  return texts.join("");
}

/** Indents every line, including the first, except empty lines. */
function indent([text, spaces]: [string, number], { budget }: Call): JsonValue {
  budget.work(text.length + (countOf(text, "\n") + 1) * spaces);
  const pad = " ".repeat(spaces);
  return text
    .split("\n")
    .map((line) => (line === "" ? line : pad + line))
    .join("\n");
}

/** How much slower the YAML library is than the engine's JSON. */
const YAML_TIMES = 16;

function written(value: JsonValue, { budget }: Call, write: (value: JsonValue) => string, times = 1): JsonValue {
  const { characters, elements } = sizeOf(value);
  budget.work(characters, elements * times);
  return charged(write(value), budget);
}

/** A text is quoted, so that YAML does not read it as another type. */
function toYaml(value: JsonValue): string {
  if (typeof value === "string") return stringifyJson(value);
  return stringify(value, { lineWidth: 0, blockQuote: false, aliasDuplicateObjects: false }).replace(/\n$/, "");
}

function pointer([value, text]: [JsonValue, string], call: Call): JsonValue {
  const found = pointAt(value, parsePointer(text));
  if (found === undefined || found === null) throw call.missing(`nothing at ${plainWord(text)}`);
  return found;
}
