/** Reads the texts of files as objects, each of which knows the line of every field that it has. No I/O. */
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
  type ScalarTag,
  type YAMLError,
  type YAMLWarning,
} from "yaml";
import { integerOf, isObject, MAX_LEVELS, nestsDeeper } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import type { Step } from "./place.ts";

export interface TextFile {
  readonly name: string;
  readonly text: string;
}

/** Something in a file that has to be changed. The message never has a value of a Secret. */
export interface Mistake {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** One object of a file. */
export interface ObjectDocument {
  readonly file: string;
  readonly object: JsonObject;
  /** The line of what the steps lead to, or of the last part of the way that is there. */
  lineOf(steps: readonly Step[]): number;
}

/** What to say of a mistake instead of the parser's own words, which quote the text. */
const RULES: Partial<Record<YAMLError["code"], string>> = {
  BAD_ALIAS: "this alias (*name) has no anchor; define it before, with &name",
  BAD_INDENT: "the indentation does not fit the lines above",
  BAD_DQ_ESCAPE: "there is no such escape in double quotes; write \\\\ for a backslash",
  BAD_SCALAR_START: "a text can't begin with this character; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: "a second key is on this line, or a text with a colon and a space is not in quotes",
  DUPLICATE_KEY: "this key is here twice; leave one of them out",
  MISSING_CHAR: "a quote, a bracket or a colon is missing",
  MULTILINE_IMPLICIT_KEY: "a colon is missing behind a key, or a text of several lines is not in quotes",
  TAB_AS_INDENT: "a tab can't indent YAML; use spaces",
  UNEXPECTED_TOKEN: "this can't be here; put a text that has [ ] { } or a comma in quotes",
  TAG_RESOLVE_FAILED: "there is no such tag (!name); leave it out",
};

/** What kubectl takes for true and false, too. */
const OLD_BOOLEAN: ScalarTag = {
  identify: (value) => typeof value === "boolean",
  default: true,
  tag: "tag:yaml.org,2002:bool",
  test: /^(?:[yY]|yes|Yes|YES|[nN]|no|No|NO|on|On|ON|off|Off|OFF)$/,
  resolve: (text) => /^(?:y|on$)/i.test(text),
};

/** Mistakes that leave the rest of a document readable. */
const INDEPENDENT = new Set<YAMLError["code"]>(["DUPLICATE_KEY", "BAD_ALIAS", "TAG_RESOLVE_FAILED"]);
const MAX_ALIASES = 1_000;
const NO_OBJECT = "this is no object; one has apiVersion, kind and metadata";

/** `expected` is what to say of something that is no mapping. */
export function readDocuments(
  files: readonly TextFile[],
  expected = NO_OBJECT,
): { documents: ObjectDocument[]; mistakes: Mistake[] } {
  const documents: ObjectDocument[] = [];
  const mistakes: Mistake[] = [];
  for (const { name: file, text } of files) {
    const lines = new LineCounter();
    const lineAt = (offset = 0) => lines.linePos(offset).line;
    for (const document of parse(text, lines)) {
      const wrong = (at: number | undefined, message: string) =>
        mistakes.push({ file, line: Math.max(1, lineAt(at)), message });
      for (const { code, pos } of errorsOf(document)) wrong(pos[0], RULES[code] ?? "the YAML is not valid here");
      const root = document.contents;
      if (document.errors.length > 0 || root === null || (isScalar(root) && root.value === null)) continue;
      const value = objectIn(document, expected);
      if (typeof value === "string") wrong(root.range?.[0], value);
      else documents.push(...objectsOf(value, root, (node) => documentOf(file, node, document, lineAt)));
    }
  }
  return { documents, mistakes };
}

const parse = (text: string, lineCounter: LineCounter): Document.Parsed[] => {
  const parsed = parseAllDocuments(text, {
    lineCounter,
    merge: true,
    intAsBigInt: true,
    prettyErrors: false,
    logLevel: "silent",
    customTags: (tags) => [OLD_BOOLEAN, ...tags],
  });
  return Array.isArray(parsed) ? parsed : [];
};

/** Behind the first place that is no YAML, the parser finds more for that reason alone. */
function errorsOf({ errors, warnings }: Document.Parsed): (YAMLError | YAMLWarning)[] {
  const syntax = errors.filter(({ code }) => !INDEPENDENT.has(code)).slice(0, 1);
  return [...errors.filter(({ code }) => INDEPENDENT.has(code)), ...syntax, ...warnings];
}

/** The object, or why there is none. */
function objectIn(document: Document.Parsed, expected: string): JsonObject | string {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    return "the aliases can't be resolved: an anchor is missing, or they expand to too much; write the values out";
  }
  if (!isObject(value)) return expected;
  if (nestsDeeper(value, MAX_LEVELS)) return `the object nests more than ${MAX_LEVELS} levels deep`;
  return asJson(value) as JsonObject;
}

function asJson(value: unknown): JsonValue {
  if (typeof value === "bigint") return integerOf(value);
  if (Array.isArray(value)) return value.map(asJson);
  if (!isObject(value)) return value as JsonValue;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, asJson(each)]));
}

/** The object itself, or the objects of a List, as kubectl prints several. */
function objectsOf(
  value: JsonObject,
  root: Node,
  make: (node: Node) => Omit<ObjectDocument, "object">,
): ObjectDocument[] {
  const { kind, apiVersion, items } = value;
  const isList = apiVersion === "v1" && kind === "List" && Array.isArray(items);
  if (!isList) return [{ ...make(root), object: value }];
  const list = isMap(root) ? root.get("items", true) : undefined;
  return items.flatMap((object, index) => {
    const node = isSeq(list) ? list.items[index] : undefined;
    return isObject(object) ? [{ ...make((node ?? root) as Node), object }] : [];
  });
}

function documentOf(
  file: string,
  root: Node,
  document: Document,
  lineAt: (offset?: number) => number,
): Omit<ObjectDocument, "object"> {
  return {
    file,
    lineOf(steps) {
      let node: unknown = root;
      let offset = root.range?.[0];
      for (const step of steps) {
        const next = childOf(isAlias(node) ? node.resolve(document) : node, step, document);
        if (next === undefined) break;
        offset = next.offset ?? offset;
        node = next.node;
      }
      return lineAt(offset);
    },
  };
}

interface Child {
  node: unknown;
  offset: number | undefined;
}

function childOf(node: unknown, step: Step, document: Document): Child | undefined {
  if (isSeq(node)) {
    const isNamed = (each: unknown) => isMap(each) && each.get("name") === step;
    const found = typeof step === "number" ? node.items[step] : node.items.find(isNamed);
    return found === undefined ? undefined : { node: found, offset: (found as Node).range?.[0] };
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
  if (pair !== undefined) return { node: pair.value, offset: (pair.key as Node).range?.[0] };
  return node.items
    .filter(({ key }: Pair) => isScalar(key) && key.value === "<<")
    .map(({ value }) => childOf(isAlias(value) ? value.resolve(document) : value, step, document))
    .find((child) => child !== undefined);
}
