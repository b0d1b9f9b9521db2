/**
 * Parses JSON and YAML with exact 64-bit integers. The text may come from a Secret and contain anything: a Problem
 * quotes nothing of it, and the result is limited in size and depth.
 */
import { type Document, isMap, isScalar, parseDocument, type Scalar, visit } from "yaml";
import { integerOf, isInt64, MAX_VALUE_LEVELS, parseJson } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import type { Budget } from "./budget.ts";
import { type DataSource, keyOf, readBytes, readText } from "./read.ts";

export type Language = "json" | "yaml";

const MAX_VALUES = 100_000;
const MAX_CHARACTERS = 2 * 1024 * 1024;
const MAX_YAML_CHARACTERS = 128 * 1024;
/**
 * Lines, entries, brackets and marks. The parser takes a tenth of a second for this number, and blocks all other work.
 */
const MAX_YAML_PARTS = 25_000;
const YAML_PART = /[\n,[\]{}&*!|>]|[-?:](?=\s)/g;
const MAX_ALIASES = 100;

/** Words and numbers without quotes that YAML 1.1 reads as something else than YAML 1.2. */
const IS_OTHER_IN_1_1 =
  /^(?:[YyNn]|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[-+]?0b[01_]+|[-+]?0[\d_]+|0o[0-7]+|[-+]?0x[\dA-Fa-f]*_[\dA-Fa-f_]*|[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?|[-+]?\d+_[\d_]*(?:\.[\d_]*)?)$/;

const names = { json: "JSON", yaml: "YAML", either: "JSON or YAML" };

/** Gets the line of the first word or number of a YAML document that YAML 1.1 reads as something else. */
export type OnDifference = (line: number) => void;

/** Throws Problem("InvalidValue"), which names the text by `subject`. */
export function parseText(
  text: string,
  language: Language | "either",
  subject: string,
  differs: OnDifference = () => {},
): JsonValue {
  const parsed = language === "yaml" ? undefined : attempt(() => parseJson(text));
  if (parsed !== undefined) return bounded(parsed.value, subject);
  if (language !== "json") {
    if (text.length > MAX_YAML_CHARACTERS)
      throw new Problem("InvalidValue", `${subject} is YAML of more than ${MAX_YAML_CHARACTERS / 1024} KiB; use JSON`);
    if (yamlParts(text) > MAX_YAML_PARTS)
      throw new Problem("InvalidValue", `${subject} is YAML of more than ${MAX_YAML_PARTS} lines and parts; use JSON`);
    const document = attempt(() => fromYaml(text))?.value;
    if (document !== undefined) {
      const { hasMergeKey, line } = look(document, text);
      const foreign = outsideOf(document, text) ?? (hasMergeKey ? MERGE_KEY : undefined);
      if (foreign !== undefined) {
        const instead = language === "yaml" ? ", or set as: string to write the text as it is" : "";
        throw new Problem("InvalidValue", `${subject} has ${foreign}${instead}`);
      }
      const yaml = attempt(() => document.toJS({ maxAliasCount: MAX_ALIASES }));
      if (yaml !== undefined) {
        if (line !== undefined) differs(line);
        return bounded(yaml.value, subject);
      }
    }
  }
  throw new Problem("InvalidValue", `${subject} is not valid ${names[language]}`);
}

/** The cost of parsing, in copied characters. */
export function costOf(text: string): number {
  // JSON is tried first. A JSON text begins like this, or is short.
  if (/^\s*[[{"]/.test(text)) return text.length * 4;
  return text.length * 2 + Math.min(yamlParts(text), MAX_YAML_PARTS) * 320;
}

function yamlParts(text: string): number {
  return text.length > MAX_YAML_CHARACTERS ? 0 : (text.match(YAML_PART)?.length ?? 0);
}

/** The error is dropped, because it quotes the text. */
function attempt<T>(parse: () => T): { value: T } | undefined {
  try {
    return { value: parse() };
  } catch {
    return undefined;
  }
}

const MERGE_KEY =
  "the merge key <<, which YAML 1.2 does not have; write out what it merges, put it in quotes if it is a key";

/** What the text has that is valid YAML, but not one document in the core schema, and what to do about it. */
function outsideOf({ errors, warnings: [tag] }: Document, text: string): string | undefined {
  if (errors.length > 0) return "several YAML documents; keep one";
  if (tag === undefined) return undefined;
  return `a tag in line ${lineAt(text, tag.pos[0])}, which Inlay does not read; remove the tag, or put it in quotes if it is text`;
}

const lineAt = (text: string, position: number | undefined) => text.slice(0, position).split("\n").length;

/**
 * Parses one document in the core schema of YAML 1.2: keys are unique texts. Throws if the text is not valid. A result with an error has
 * further documents; a result with a warning has other tags.
 */
function fromYaml(text: string): Document {
  const document = parseDocument(text, {
    version: "1.2",
    schema: "core",
    resolveKnownTags: false,
    merge: false,
    stringKeys: true,
    // Replaced by assertUniqueKeys: the parser's check takes time with the square of the number of keys.
    uniqueKeys: false,
    intAsBigInt: true,
    prettyErrors: false,
    logLevel: "error",
  });
  const wrong =
    document.errors.find(({ code }) => code !== "MULTIPLE_DOCS") ??
    document.warnings.find(({ code }) => code !== "TAG_RESOLVE_FAILED");
  if (wrong !== undefined) throw wrong;
  assertUniqueKeys(document);
  return document;
}

function assertUniqueKeys(document: Document): void {
  visit(document, {
    Map(_, map) {
      const keys = new Set(map.items.map(({ key }) => (isScalar(key) ? String(key.value) : key)));
      if (!isMap(map) || keys.size < map.items.length) throw new Error("duplicate key");
    },
  });
}

/** Finds merge keys, and the line of the first text that YAML 1.1 reads as something else. */
function look(document: Document, text: string): { hasMergeKey: boolean; line: number | undefined } {
  const isPlain = ({ type, tag }: Scalar) => type === "PLAIN" && tag === undefined;
  let hasMergeKey = false;
  let line: number | undefined;
  visit(document, {
    Scalar(position, scalar) {
      if (!isPlain(scalar)) return;
      hasMergeKey ||= position === "key" && scalar.source === "<<";
      if (line === undefined && IS_OTHER_IN_1_1.test(scalar.source ?? "")) line = lineAt(text, scalar.range?.[0]);
    },
  });
  return { hasMergeKey, line };
}

/** Copies a parsed value, with limits on everything: a YAML alias may expand to a large value. */
function bounded(parsed: unknown, subject: string): JsonValue {
  let [values, characters] = [0, 0];
  const wrong = (what: string) => new Problem("InvalidValue", `${subject} ${what}`);
  const text = (value: string): string => {
    characters += value.length;
    if (characters > MAX_CHARACTERS) throw wrong("is too long after parsing; make it shorter");
    if (!value.isWellFormed()) throw wrong("contains half a character, written as \\ud800 to \\udfff");
    return value;
  };
  const copy = (value: unknown, depth: number): JsonValue => {
    values += 1;
    if (values > MAX_VALUES) throw wrong(`has more than ${MAX_VALUES} values; make it smaller`);
    if (depth > MAX_VALUE_LEVELS) throw wrong(`has more than ${MAX_VALUE_LEVELS} levels; nest fewer objects and lists`);
    if (typeof value === "string") return text(value);
    if (typeof value === "bigint") {
      // The API server stores a larger integer as a double.
      const isExact = isInt64(value) || String(Number(value)) === String(value);
      if (!isExact)
        throw wrong("has an integer of more than 64 bits, which would lose its last digits; write it as a string");
      return integerOf(value);
    }
    if (typeof value === "number" && !Number.isFinite(value))
      throw wrong("has a number that JSON can't represent; write it as a string");
    if (typeof value !== "object" || value === null) return value as JsonValue;
    if (Array.isArray(value)) return value.map((each) => copy(each, depth + 1));
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [text(key), copy(each, depth + 1)]));
  };
  return copy(parsed, 0);
}

interface Read {
  value: SecretValue<JsonValue>;
  line?: number;
}
type Documents = Partial<Record<Language | "either", Read | Problem>>;
const parsedKeys = new WeakMap<SecretValue<Uint8Array>, Documents>();

/** The JSON or YAML of a key, parsed once for all targets. Throws what `readText`, `parseText` and the budget throw. */
export function readDocument(
  source: DataSource,
  key: string,
  budget: Budget,
  language: Language | "either" = "either",
  differs: OnDifference = () => {},
): SecretValue<JsonValue> {
  const bytes = readBytes(source, key);
  const text = readText(source, key);
  budget.workOnce(bytes, () => costOf(text.reveal()));
  const known = parsedKeys.get(bytes) ?? {};
  parsedKeys.set(bytes, known);
  known[language] ??= attemptSync(() => {
    const read: Omit<Read, "value"> = {};
    const note = (line: number) => {
      read.line = line;
    };
    return { value: text.map((each) => parseText(each, language, keyOf(source, key), note)), ...read };
  });
  const document = known[language];
  if (document instanceof Problem) throw document;
  if (document.line !== undefined) differs(document.line);
  return document.value;
}
