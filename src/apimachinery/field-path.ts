/**
 * Parses and prints paths to fields, such as `spec.host`. Each path has one canonical text, so code can compare and
 * record texts.
 */
import { pointerTo } from "./json-pointer.ts";
import { getOrInsert, Remembered } from "./maps.ts";
import { plainPath, plainWord, quoted } from "./objects.ts";
import { attemptSync, Problem } from "./problem.ts";

/**
 * One step from an object or a list to a value in it. `key`: a field of an object. `index`: a position in a list, from
 * 0, as the list is now. `element`: the one element of a list that matches all conditions, which are sorted by key.
 */
type Segment =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "index"; readonly index: number }
  | { readonly kind: "element"; readonly conditions: readonly ElementCondition[] };

/** A field of an element and its value as text: `80` also matches the number 80. */
interface ElementCondition {
  readonly key: string;
  readonly value: string;
}

const isBare = (text: string): boolean => /^[A-Za-z0-9_-]+$/.test(text);
const isBareValue = (text: string): boolean => /^[^\s"'\\[\]=,]+$/.test(text);

/** Quotes keys and values only where necessary. */
function pathText(segments: readonly Segment[]): string {
  return segments.map(segmentText).join("");
}

function segmentText(segment: Segment, position: number): string {
  if (segment.kind === "index") return `[${segment.index}]`;
  if (segment.kind === "element") return `[${segment.conditions.map(conditionText).join(",")}]`;
  const key = isBare(segment.key) ? segment.key : quoted(segment.key);
  return key !== segment.key ? `[${key}]` : position === 0 ? key : `.${key}`;
}

function conditionText({ key, value }: ElementCondition): string {
  const [left, right] = [isBare(key) ? key : quoted(key), isBareValue(value) ? value : quoted(value)];
  return `${left}=${right}`;
}

export type { ElementCondition, Segment };

const BARE = /[A-Za-z0-9_-]+/y;
const BARE_VALUE = /[^\s"'\\[\]=,]+/y;
const QUOTED = /"(?:[^"\\]|\\.)*"/y;
const INDEX = /(?:0|[1-9]\d{0,8})(?=\])/y;

/** Keys with a meaning in JavaScript, and none in Kubernetes. */
const REFUSED = new Set(["__proto__", "constructor", "prototype"]);

/** Whether a path may contain that key. */
export const isNameable = (key: string): boolean => !REFUSED.has(key);

/** Each change of a value needs the same paths several times. */
const parsed = new Remembered<FieldPath>();

/** A path from the root of an object, such as `spec.hosts[0].name` or `metadata.annotations["example.com/key"]`. */
export class FieldPath {
  readonly segments: readonly Segment[];
  #text: string | undefined;
  #parents: Map<number, FieldPath> | undefined;

  /** Throws Problem("InvalidPath") for `__proto__`, `constructor` and `prototype`. */
  constructor(segments: readonly Segment[]) {
    for (const segment of segments) {
      const keys =
        segment.kind === "key" ? [segment.key] : segment.kind === "element" ? keysOf(segment.conditions) : [];
      const refused = keys.find((key) => REFUSED.has(key));
      if (refused !== undefined) throw new Problem("InvalidPath", `the key ${refused} can't be part of a path`);
    }
    this.segments = segments;
  }

  /** Parses a path. Throws Problem("InvalidPath") with the error and its column (from 1). */
  static parse(text: string): FieldPath {
    return parsed.get(text, () => new FieldPath([...new Parser(text).segments()]));
  }

  /** The canonical text: keys are quoted only where necessary. `parse` of it equals this path. */
  toString(): string {
    this.#text ??= pathText(this.segments);
    return this.#text;
  }

  /** The value at the path, or undefined. Only own properties count. Throws Problem("ElementNotUnique"). */
  get(object: unknown): unknown {
    return this.segments.reduce((from, segment, position) => {
      if (segment.kind !== "element" || !Array.isArray(from)) return step(from, segment);
      const found = elementsOf(from, segment.conditions, object);
      if (found.length > 1) throw notUnique(this.upTo(position + 1), found);
      return from[found[0] ?? -1];
    }, object);
  }

  /** The path with more segments at its end. */
  with(...more: Segment[]): FieldPath {
    return new FieldPath([...this.segments, ...more]);
  }

  /** The path of the first `length` segments. */
  upTo(length: number): FieldPath {
    if (length === this.segments.length) return this;
    this.#parents ??= new Map();
    return getOrInsert(this.#parents, length, () => new FieldPath(this.segments.slice(0, length)));
  }

  /** Whether the path contains only keys, no elements of lists. */
  get isPlain(): boolean {
    return this.segments.every((segment) => segment.kind === "key");
  }

  /** The path without its last segment; undefined for a path of one segment. */
  get parent(): FieldPath | undefined {
    return this.segments.length > 1 ? this.upTo(this.segments.length - 1) : undefined;
  }

  /** Whether `other` is this path or one of its parents. */
  startsWith(other: FieldPath): boolean {
    return (
      other.segments.length <= this.segments.length &&
      other.segments.every((segment, position) => sameSegment(segment, this.segments[position]))
    );
  }

  equals(other: FieldPath): boolean {
    return other.segments.length === this.segments.length && this.startsWith(other);
  }

  /** The path as a JSON pointer (RFC 6901). Throws TypeError for a path with `[key=value]`: find the index first. */
  toJsonPointer(): string {
    const tokens = this.segments.map((segment) => {
      if (segment.kind === "element") throw new TypeError(`${this} has no JSON pointer`);
      return segment.kind === "index" ? `${segment.index}` : segment.key;
    });
    return pointerTo(tokens);
  }
}

/**
 * The value that one segment leads to, or undefined. Only own properties count. Of several matching elements, the
 * first.
 */
export function step(from: unknown, segment: Segment): unknown {
  if (segment.kind === "key") return Array.isArray(from) ? undefined : own(from, segment.key);
  if (!Array.isArray(from)) return undefined;
  return from[segment.kind === "index" ? segment.index : (elementsOf(from, segment.conditions)[0] ?? -1)];
}

/** The length up to which a search in a list costs less than remembering it. */
const SHORT_LIST = 64;

/** Per settled object and long list: the index of the only element that matches the conditions, or none, by their text. */
const searches = new WeakMap<object, Map<readonly unknown[], Map<string, readonly number[]>>>();

/**
 * Declares that the object and everything in it does not change any more, and returns it. Then each search for an element
 * in a long list takes place once: a binding may search for 64 elements among 100,000, each a dozen times. Copies of the
 * object are not settled.
 */
export function settled<T extends object>(object: T): T {
  if (!searches.has(object)) searches.set(object, new Map());
  return object;
}

/** The indexes of all elements of a list that match the conditions. `object` is the object that contains the list. */
export function elementsOf(
  list: readonly unknown[],
  conditions: readonly ElementCondition[],
  object?: unknown,
): readonly number[] {
  const known = list.length > SHORT_LIST ? searches.get(object as object) : undefined;
  if (known === undefined) return search(list, conditions);
  const ofList = getOrInsert(known, list, () => new Map<string, readonly number[]>());
  const text = pathText([{ kind: "element", conditions }]);
  const found = ofList.get(text) ?? search(list, conditions);
  // Many indexes would take much memory. They are a mistake in the binding, which ends its reconcile.
  if (found.length <= 1) ofList.set(text, found);
  return found;
}

function search(list: readonly unknown[], conditions: readonly ElementCondition[]): number[] {
  const found: number[] = [];
  for (const [place, element] of list.entries()) if (matches(element, conditions)) found.push(place);
  return found;
}

function matches(element: unknown, conditions: readonly ElementCondition[]): boolean {
  for (const { key, value } of conditions) {
    const found = own(element, key);
    if (found === undefined || found === null || typeof found === "object" || String(found) !== value) return false;
  }
  return true;
}

/** How many indexes a message lists. */
const MAX_INDEXES = 5;

/** The problem of a path whose last conditions match more than one element, at the indexes `found`. */
export function notUnique(path: FieldPath, found: readonly number[]): Problem {
  const indexes = `${found.slice(0, MAX_INDEXES).join(", ")}${found.length > MAX_INDEXES ? ", and others" : ""}`;
  const message = `${path} matches ${found.length} elements of the list, with the indexes ${indexes}; name one, by more conditions as in [name=web,port=80] or by its index`;
  return new Problem("ElementNotUnique", message);
}

/** Sorts conditions by key. */
export function inOrder(conditions: readonly ElementCondition[]): ElementCondition[] {
  return conditions.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

const keysOf = (conditions: readonly ElementCondition[]) => conditions.map(({ key }) => key);

function own(from: unknown, key: string): unknown {
  if (typeof from !== "object" || from === null || !Object.hasOwn(from, key)) return undefined;
  return (from as Record<string, unknown>)[key];
}

export function sameSegment(a: Segment, b: Segment | undefined): boolean {
  if (a.kind === "index") return b?.kind === "index" && a.index === b.index;
  if (a.kind === "key") return b?.kind === "key" && a.key === b.key;
  return (
    b?.kind === "element" &&
    a.conditions.length === b.conditions.length &&
    a.conditions.every(({ key, value }, n) => key === b.conditions[n]?.key && value === b.conditions[n].value)
  );
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  *segments(): Generator<Segment> {
    if (this.#text === "") throw this.#wrong("the path is empty; write it from the object's root, as in spec.host");
    const foreign = foreignPath(this.#text);
    if (foreign !== undefined) throw this.#wrong(foreign);
    while (this.#at < this.#text.length) {
      if (this.#takes("[")) {
        yield this.#bracket();
      } else {
        if (this.#at > 0 && !this.#takes(".")) throw this.#wrong(this.#quoteHint());
        const key = this.#take(BARE);
        if (key === undefined) throw this.#wrong(this.#text[this.#at] === "[" ? dotHint : this.#quoteHint());
        yield { kind: "key", key };
      }
    }
  }

  /** The text between [ and ]. The [ is already consumed. */
  #bracket(): Segment {
    const start = this.#at;
    const index = this.#take(INDEX);
    if (index !== undefined && start > 1 && this.#takes("]")) return { kind: "index", index: Number(index) };
    const quoted = this.#quoted();
    if (quoted !== undefined && this.#takes("]")) return { kind: "key", key: quoted };
    this.#at = start;
    const conditions = start > 1 ? this.#conditions() : undefined;
    if (conditions !== undefined && this.#takes("]")) return { kind: "element", conditions };
    this.#at = start;
    throw this.#wrong(start === 1 ? rootHint : bracketHint);
  }

  /** One or more conditions key=value, sorted by key; undefined for any other text. */
  #conditions(): ElementCondition[] | undefined {
    const conditions: ElementCondition[] = [];
    do {
      const key = this.#quoted() ?? this.#take(BARE);
      if (key === undefined || !this.#takes("=")) return undefined;
      const value = this.#quoted() ?? this.#take(BARE_VALUE);
      if (value === undefined) return undefined;
      if (keysOf(conditions).includes(key)) throw this.#wrong(`two conditions name ${plainWord(key)}; remove one`);
      conditions.push({ key, value });
    } while (this.#takes(","));
    return inOrder(conditions);
  }

  #quoted(): string | undefined {
    const text = this.#take(QUOTED);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as string;
    } catch {
      this.#at -= text.length;
      throw this.#wrong('a string in quotes must be a JSON string: write \\\\ for \\, \\n for a line break, \\" for "');
    }
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #takes(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #quoteHint(): string {
    const found = this.#text[this.#at];
    const what =
      found === undefined
        ? "a key is missing at the end"
        : found === "."
          ? "a key is missing before this dot"
          : `${quoted(found)} is not allowed here`;
    const [, map, key] = MAP.exec(this.#text) ?? [];
    const example = key === undefined ? 'data["tls.crt"]' : `${map}[${quoted(key)}]`;
    return `${what}; quote a key that has characters other than letters, digits, _ and -, as in ${example}`;
  }

  #wrong(what: string): Problem {
    return new Problem("InvalidPath", `path ${plainPath(this.#text)}, column ${this.#at + 1}: ${what}`);
  }
}

export const keySegment = (key: string): Segment => ({ kind: "key", key });

/** Maps whose keys often have dots and slashes, with such a key that is not quoted. */
const MAP =
  /^((?:[\w.-]+\.)?(?:annotations|labels|matchLabels|nodeSelector|data|stringData|binaryData))\.([^"[\]]*[^."[\]])$/s;

/** Explains a path in the syntax of JSONPath or of a JSON pointer, with the same path in ours. */
function foreignPath(text: string): string | undefined {
  const jsonPath = /^(?:\{\s*)?(?:\$\.?|\.)([^.].*?)\}?$/s.exec(text)?.[1];
  const keys =
    /^\/?[\w~-]+(?:\/[\w~.-]+)+$/.test(text) || /^\/[\w~.-]+$/.test(text) ? parsePointerLike(text) : undefined;
  if (jsonPath === undefined && keys === undefined) return undefined;
  const path = attemptSync(() => (keys === undefined ? FieldPath.parse(jsonPath as string) : new FieldPath(keys)));
  return `a path begins with the name of a field, and has dots between names; write ${path instanceof Problem ? "it as in spec.host" : path}`;
}

function parsePointerLike(text: string): Segment[] {
  const names = text.replace(/^\//, "").split("/");
  return names.map((name, position) => {
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    return position > 0 && /^(0|[1-9]\d{0,8})$/.test(key)
      ? { kind: "index", index: Number(key) }
      : { kind: "key", key };
  });
}

const dotHint = 'there is a dot before [; write a["key"] or a[0]';
const rootHint = 'start the path with a field of the object, as in spec or ["a field"]';
const bracketHint =
  'write an index [0], a key in double quotes ["example.com/key"] or an element [name=web] or [name=web,port=80] in brackets';
