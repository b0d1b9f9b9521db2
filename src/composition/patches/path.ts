/** Parses the paths of patches, in the syntax of Crossplane. */
import { FieldPath, type Segment } from "../../apimachinery/field-path.ts";
import { MAX_VALUE_LEVELS } from "../../apimachinery/json.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";

/** `wildcard`: every element of a list, or every field of an object. */
export type CompositeSegment = Segment | { readonly kind: "wildcard" };

export interface CompositePath<S extends CompositeSegment = CompositeSegment> {
  /** The text in the composition. */
  readonly text: string;
  readonly segments: readonly S[];
}

/** A path without wildcards, which names one field. */
export type ConcretePath = CompositePath<Segment>;

const FIELD = /[^.[\]]*/y;
/** The conditions of an element in paths of SecretBindings. Single quotes and spaces are not part of them. */
const CONDITION = String.raw`(?:"(?:[^"\\]|\\.)*"|[A-Za-z0-9_-]+)=(?:"(?:[^"\\]|\\.)*"|[^\s"'\\[\]=,]+)`;
const ELEMENT = new RegExp(String.raw`\[${CONDITION}(?:,${CONDITION})*\]`, "y");
const QUOTED = /^(?:'.*'|".*")$/s;
/** Larger numbers are keys. */
const MAX_INDEX = 2 ** 32 - 1;

/** Throws Problem("InvalidPath") with the mistake and its column (from 1). */
export function parseCompositePath(text: string): CompositePath {
  // As in Crossplane: if the path contains a wildcard in brackets, every `*` in it is a wildcard, even without brackets.
  const hasWildcards = text.includes("[*]");
  const segments = segmentsOf(text).map((segment): CompositeSegment => {
    return hasWildcards && segment.kind === "key" && segment.key === "*" ? { kind: "wildcard" } : segment;
  });
  if (segments.length > MAX_VALUE_LEVELS)
    throw wrong(text, 0, `the path has more than ${MAX_VALUE_LEVELS} segments; shorten it`);
  // Refuses __proto__ and similar keys.
  new FieldPath(segments.filter((segment) => segment.kind !== "wildcard"));
  return { text, segments };
}

export function isConcrete(path: CompositePath): path is ConcretePath {
  return path.segments.every(({ kind }) => kind !== "wildcard");
}

/** The canonical text of segments. */
export function textOf(segments: readonly CompositeSegment[]): string {
  return segments
    .map((segment, position) => {
      if (segment.kind === "wildcard") return "[*]";
      const text = new FieldPath([segment]).toString();
      return position === 0 || text.startsWith("[") ? text : `.${text}`;
    })
    .join("");
}

/** The keys at the beginning of a path, up to the first list or wildcard. */
export function plainPrefix({ segments }: CompositePath): FieldPath {
  const end = segments.findIndex(({ kind }) => kind !== "key");
  return new FieldPath((end < 0 ? segments : segments.slice(0, end)) as Segment[]);
}

function segmentsOf(text: string): Segment[] {
  if (text === "") throw wrong(text, 0, "the path is empty; write it from the object's root, as in spec.host");
  const segments: Segment[] = [];
  for (let at = 0; at < text.length; ) {
    const field = take(FIELD, text, at);
    if (field !== "") segments.push(keyOf(field));
    at += field.length;
    if (text[at] === "]") throw wrong(text, at, "this bracket has no opening bracket; remove it, or add [");
    if (text[at] === ".") {
      if (at === 0) throw wrong(text, at, "the path begins with a dot; remove it");
      if (at === text.length - 1) throw wrong(text, at, "the path ends with a dot; remove it");
      at++;
      if (text[at] === "." || text[at] === "[")
        throw wrong(text, at, "a dot must be followed by a field; write a.b or a[0]");
    } else if (text[at] === "[") {
      const { segment, length } = bracketAt(text, at);
      segments.push(segment);
      at += length;
    }
  }
  return segments;
}

/** The segment in a bracket, and its number of characters. */
function bracketAt(text: string, at: number): { segment: Segment; length: number } {
  const element = take(ELEMENT, text, at);
  if (element !== "") {
    // Not every quoted text is a valid string, and a field may be listed twice.
    const parsed = attemptSync(() => FieldPath.parse(`list${element}`).segments[1] as Segment);
    if (parsed instanceof Problem) throw wrong(text, at + 1, elementHint);
    return { segment: parsed, length: element.length };
  }
  const end = text.indexOf("]", at);
  if (end < 0) throw wrong(text, at, "this bracket is not closed; add ]");
  const content = text.slice(at + 1, end);
  if (content === "") throw wrong(text, at + 1, "the bracket is empty; write [0], [a-key] or [*]");
  if (content.includes("["))
    throw wrong(text, at + 1 + content.indexOf("["), "another bracket is open; close it first");
  if (content.includes("=") && !QUOTED.test(content)) throw wrong(text, at + 1, elementHint);
  const isIndex = /^\d+$/.test(content) && Number(content) <= MAX_INDEX;
  const segment = isIndex ? ({ kind: "index", index: Number(content) } as const) : keyOf(content);
  return { segment, length: content.length + 2 };
}

const elementHint =
  "an element of a list is written as [type=Ready] or, with each field once, [name=\"a b\",port=80]; put a key that has = in it in quotes, as in ['a=b']";

/** Quotes around a key are not part of the key. */
const keyOf = (text: string): Segment => ({ kind: "key", key: text.replace(/^['"]+|['"]+$/g, "") });

function take(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

function wrong(text: string, at: number, what: string): Problem {
  return new Problem("InvalidPath", `path ${text}, column ${at + 1}: ${what}`);
}
