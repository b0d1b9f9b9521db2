/** Parses the texts of files to objects, and knows the line of every field. No I/O. */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type Scalar,
  type ScalarTag,
  type YAMLError,
  type YAMLMap,
  type YAMLSeq,
  type YAMLWarning,
} from "yaml";
import { integerOf, isObject, MAX_LEVELS, nestsDeeper } from "../apimachinery/json.ts";
import { oncePerObject } from "../apimachinery/maps.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { Reason } from "../apimachinery/problem.ts";
import type { Step } from "./place.ts";

export interface TextFile {
  readonly name: string;
  readonly text: string;
  /** It was found in a folder, and is not named itself. */
  readonly isFound?: boolean;
}

/** `InvalidFile`: the text can't be read as objects. `Invalid`: the API server would refuse the object. */
export type MistakeReason = Reason | "InvalidFile" | "Invalid";

/** A mistake in a file. The message never contains a value of a Secret. */
export interface Mistake extends Position {
  readonly file: string;
  readonly reason: MistakeReason;
  readonly message: string;
}

/** Without those that say the same of one line. */
export const distinctMistakes = (mistakes: readonly Mistake[]): Mistake[] => [
  ...new Map(mistakes.map((each) => [`${each.file}:${each.line} ${each.message}`, each])).values(),
];

/** Both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** One object of a file. */
export interface ObjectDocument {
  readonly file: string;
  readonly object: JsonObject;
  /**
   * The position of the value that the steps lead to, or of the deepest existing part of the path. For a value that begins on another
   * line than its key, the position of the key.
   */
  positionOf(steps: readonly Step[]): Position;
}

/** Messages that replace those of the parser, which quote the text. */
const RULES: Partial<Record<YAMLError["code"], string>> = {
  BAD_ALIAS: "this alias (*name) has no anchor; define the anchor before it with &name",
  BAD_INDENT: "the indentation does not match the lines above; align it",
  BAD_DQ_ESCAPE: "invalid escape in double quotes; write \\\\ for a backslash",
  BAD_SCALAR_START: "a string can't begin with this character; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY:
    "this line has a second key, or a string with a colon and a space; put each key on its own line, and the string in quotes",
  MISSING_CHAR: "missing quote, bracket or colon; add it",
  MULTILINE_IMPLICIT_KEY:
    "missing colon after a key, or a string of several lines; add the colon, or put the string in quotes",
  TAB_AS_INDENT: "YAML can't be indented with tabs; use spaces",
  UNEXPECTED_TOKEN: "unexpected character; put strings with [ ] { } or a comma in quotes",
  TAG_RESOLVE_FAILED: "unknown tag (!name); remove it",
};

/** Other spellings that kubectl reads as true and false. */
const OLD_BOOLEAN: ScalarTag = {
  identify: (value) => typeof value === "boolean",
  default: true,
  tag: "tag:yaml.org,2002:bool",
  test: /^(?:[yY]|yes|Yes|YES|[nN]|no|No|NO|on|On|ON|off|Off|OFF)$/,
  resolve: (text) => /^(?:y|on$)/i.test(text),
};

/** Numbers that kubectl and other programs in Go read, and YAML 1.2 does not, or as others: `0755`, `0b1`, `1_000`. */
const OLD_NUMBER: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:yaml.org,2002:int",
  test: /^[-+]?(?:0[0-7_]+|0[bB][01_]+|0[oO][0-7_]+|0[xX][\da-fA-F_]+|(?=[\d.]*_)[\d_.]+(?:[eE][-+]?[\d_]+)?)$/,
  resolve: numberOf,
};

/** As `strconv.ParseInt` with base 0, or else a decimal number. The text itself if it is neither. */
function numberOf(text: string): bigint | number | string {
  const plain = text.replaceAll("_", "");
  const [, sign, radix = "", digits = ""] = /^([-+]?)(0[box]|0(?=[0-7]+$)|)([\da-f]+)$/i.exec(plain) ?? [];
  if (digits !== "" && (radix !== "" || /^\d+$/.test(digits)) && /^[-+\d]/.test(text)) {
    const value = BigInt(`${radix === "0" ? "0o" : radix}${digits}`) * (sign === "-" ? -1n : 1n);
    if (value >= -(2n ** 63n) && value < 2n ** 64n) return value;
  }
  const isDecimal = /^[-+\d]/.test(text) && /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?$/i.test(plain);
  return isDecimal ? Number(plain) : text;
}

/** Mistakes after which the rest of a document can still be read. */
const INDEPENDENT = new Set<YAMLError["code"]>(["BAD_ALIAS", "TAG_RESOLVE_FAILED"]);
const MAX_ALIASES = 1_000;
const NO_OBJECT = "not an object; write apiVersion, kind and metadata";

/**
 * `expected` is the message for a document that is not a mapping; `others` are the mistakes that say so. `tags` are for what else a text
 * without quotes is.
 */
export function readDocuments(
  files: readonly TextFile[],
  expected = NO_OBJECT,
  tags: readonly ScalarTag[] = [],
): { documents: ObjectDocument[]; mistakes: Mistake[]; others: Set<Mistake> } {
  const documents: ObjectDocument[] = [];
  const mistakes: Mistake[] = [];
  const others = new Set<Mistake>();
  for (const { name: file, text } of files) {
    const lines = new LineCounter();
    const positionAt = (offset = 0) => {
      const { line, col } = lines.linePos(offset);
      return { line: Math.max(1, line), column: Math.max(1, col) };
    };
    for (const document of parse(text, lines, tags)) {
      const wrong = (at: number | undefined, message: string): Mistake => {
        const mistake: Mistake = { file, ...positionAt(at), reason: "InvalidFile", message };
        mistakes.push(mistake);
        return mistake;
      };
      for (const { code, pos } of errorsOf(document)) wrong(pos[0], RULES[code] ?? "invalid YAML");
      const root = document.contents;
      const duplicates = duplicateKeys(root);
      for (const at of duplicates) wrong(at, "duplicate key; remove one of them");
      if (
        document.errors.length > 0 ||
        duplicates.length > 0 ||
        root === null ||
        (isScalar(root) && root.value === null)
      )
        continue;
      const value = objectIn(document);
      if (value === undefined) others.add(wrong(root.range?.[0], expected));
      else if (typeof value === "string") wrong(root.range?.[0], value);
      else {
        const other = isList(value) ? value.items.findIndex((each) => !isObject(each)) : -1;
        if (other >= 0) wrong(root.range?.[0], `items[${other}] of this List is ${NO_OBJECT}`);
        documents.push(...objectsOf(value, root, (node) => documentOf(file, node, document, positionAt)));
      }
    }
  }
  return { documents, mistakes, others };
}

const parse = (text: string, lineCounter: LineCounter, more: readonly ScalarTag[]): Document.Parsed[] => {
  const parsed = parseAllDocuments(text, {
    lineCounter,
    merge: true,
    intAsBigInt: true,
    // The parser would compare each key of a mapping with all others.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: "silent",
    customTags: (tags) => [...more, OLD_BOOLEAN, OLD_NUMBER, ...tags],
  });
  return Array.isArray(parsed) ? parsed : [];
};

/** The offsets of keys that a mapping has already. */
function duplicateKeys(node: unknown): number[] {
  if (isSeq(node)) return node.items.flatMap(duplicateKeys);
  if (!isMap(node)) return [];
  const known = new Set<unknown>();
  return node.items.flatMap(({ key, value }) => {
    const name = isScalar(key) ? key.value : key;
    const isDuplicate = known.has(name);
    known.add(name);
    return [...(isDuplicate ? [(key as Node).range?.[0] ?? 0] : []), ...duplicateKeys(key), ...duplicateKeys(value)];
  });
}

/** Only the first syntax error is reported, because it often causes the others. */
function errorsOf({ errors, warnings }: Document.Parsed): (YAMLError | YAMLWarning)[] {
  const syntax = errors.filter(({ code }) => !INDEPENDENT.has(code)).slice(0, 1);
  return [...errors.filter(({ code }) => INDEPENDENT.has(code)), ...syntax, ...warnings];
}

/** The object, or the message why it can't be read. Undefined for what is not a mapping. */
function objectIn(document: Document.Parsed): JsonObject | string | undefined {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    return "can't resolve the aliases: an anchor is missing, or they expand to too much; write the values without aliases";
  }
  if (!isObject(value)) return undefined;
  if (nestsDeeper(value, MAX_LEVELS))
    return `the object has more than ${MAX_LEVELS} levels; nest fewer objects and lists`;
  return asJson(value) as JsonObject;
}

/** Replaces integers within the value, because copies take time in files with many objects. */
function asJson(value: unknown): JsonValue {
  if (typeof value === "bigint") return integerOf(value);
  if (typeof value !== "object" || value === null) return value as JsonValue;
  const fields = value as Record<string, unknown>;
  for (const key of Object.keys(fields)) {
    const [before, now] = [fields[key], asJson(fields[key])];
    if (now !== before) fields[key] = now;
  }
  return value as JsonValue;
}

/** The object itself, or the objects of a List, as kubectl prints several objects. */
function objectsOf(
  value: JsonObject,
  root: Node,
  make: (node: Node) => Omit<ObjectDocument, "object">,
): ObjectDocument[] {
  if (!isList(value)) return [{ ...make(root), object: value }];
  const { items } = value;
  const list = isMap(root) ? root.get("items", true) : undefined;
  return items.flatMap((object, index) => {
    const node = isSeq(list) ? list.items[index] : undefined;
    return isObject(object) ? [{ ...make((node ?? root) as Node), object }] : [];
  });
}

const isList = (value: JsonObject): value is JsonObject & { items: JsonValue[] } =>
  value["apiVersion"] === "v1" && value["kind"] === "List" && Array.isArray(value["items"]);

function documentOf(
  file: string,
  root: Node,
  document: Document,
  positionAt: (offset?: number) => Position,
): Omit<ObjectDocument, "object"> {
  return {
    file,
    positionOf(steps) {
      let node: unknown = root;
      let offset = root.range?.[0];
      for (const step of steps) {
        const next = childOf(isAlias(node) ? node.resolve(document) : node, step, document);
        if (next === undefined) break;
        offset = next.offset ?? offset;
        node = next.node;
      }
      const at = positionAt(offset);
      const start = isScalar(node) && node.range ? positionAt(node.range[0]) : at;
      return start.line === at.line ? start : at;
    },
  };
}

interface Child {
  node: unknown;
  offset: number | undefined;
}

function childOf(node: unknown, step: Step, document: Document): Child | undefined {
  if (isSeq(node)) {
    const found = typeof step === "number" ? node.items[step] : elementsOf(node).get(step);
    return found === undefined ? undefined : { node: found, offset: (found as Node).range?.[0] };
  }
  if (!isMap(node)) return undefined;
  const { pairs, merged } = fieldsOf(node);
  const pair = pairs.get(String(step));
  if (pair !== undefined) return { node: pair.value, offset: (pair.key as Node).range?.[0] };
  return merged
    .map((value) => childOf(isAlias(value) ? value.resolve(document) : value, step, document))
    .find((child) => child !== undefined);
}

interface Fields {
  readonly pairs: ReadonlyMap<string, Pair>;
  /** The values of `<<`. */
  readonly merged: readonly unknown[];
}

/** The first pair of each key. */
const fieldsOf = oncePerObject((map: YAMLMap): Fields => {
  const named = map.items.filter(({ key }) => isScalar(key));
  const isMerge = ({ key }: Pair) => String((key as Scalar).value) === "<<";
  return {
    pairs: new Map(named.map((pair): [string, Pair] => [String((pair.key as Scalar).value), pair]).reverse()),
    merged: named.filter(isMerge).map(({ value }) => value),
  };
});

/** The first element of each name. */
const elementsOf = oncePerObject(
  (list: YAMLSeq): ReadonlyMap<unknown, unknown> =>
    new Map(list.items.map((each): [unknown, unknown] => [isMap(each) ? each.get("name") : undefined, each]).reverse()),
);
