/** A view of an object in a file that records which fields a converter has handled, so that no field is lost silently. Pure. */
import { FieldPath, keySegment, type Segment } from "../apimachinery/field-path.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";
import { plain } from "../apimachinery/plain.ts";
import type { Mistake, ObjectDocument } from "../render/documents.ts";

/** The keys and indexes that lead to a field. */
export type Steps = readonly (string | number)[];
type Each<Names extends readonly string[], T> = { [At in keyof Names]: T };

/** Something of an object that is not converted. */
export interface Loss {
  readonly mistake: Mistake;
  /** The innermost part of the object that it is in, by its `key`. Undefined if it concerns all of the object. */
  readonly part: string | undefined;
  readonly steps: Steps;
}

/** The handled fields of one object, its parts, and what could not be converted. */
interface Ledger {
  readonly document: ObjectDocument;
  readonly handled: Set<string>;
  readonly parts: Set<string>;
  readonly lost: Loss[];
}

const UNKNOWN = "Inlay does not know this field, so it is not converted; check whether you need it";

/** One field of the object, or the object itself. The value may be missing. */
export class Tracked {
  readonly #value: JsonValue | undefined;
  readonly #steps: Steps;
  readonly #ledger: Ledger;

  private constructor(value: JsonValue | undefined, steps: Steps, ledger: Ledger) {
    this.#value = value;
    this.#steps = steps;
    this.#ledger = ledger;
  }

  static of(document: ObjectDocument): Tracked {
    return new Tracked(document.object, [], { document, handled: new Set(), parts: new Set(), lost: [] });
  }

  /** The file and line, such as `policies.yaml:3`. */
  get place(): string {
    const { document } = this.#ledger;
    return `${plain(document.file)}:${document.positionOf(this.#steps).line}`;
  }

  /** Names this field in its object. */
  get key(): string {
    return JSON.stringify(this.#steps);
  }

  /** Makes this field a part that is converted by itself: what is lost in it concerns only the objects that come from it. */
  separate(): void {
    this.#ledger.parts.add(this.key);
  }

  get exists(): boolean {
    return this.#value !== undefined && this.#value !== null;
  }

  /** Does not count as handled yet. */
  field(...keys: readonly string[]): Tracked {
    return keys.reduce<Tracked>((from, key) => {
      const value = isObject(from.#value) && Object.hasOwn(from.#value, key) ? from.#value[key] : undefined;
      return new Tracked(value, [...from.#steps, key], from.#ledger);
    }, this);
  }

  /** Several fields, which do not count as handled yet. */
  fields<const Names extends readonly string[]>(...names: Names): Each<Names, Tracked> {
    return names.map((name) => this.field(name)) as Each<Names, Tracked>;
  }

  /** The elements of a list, which do not count as handled yet. */
  list(): Tracked[] {
    if (!this.exists) return this.#done([]);
    if (!Array.isArray(this.#value)) return this.#wrongType("a list", []);
    if (this.#value.length === 0) this.ignore();
    return this.#value.map((value, index) => new Tracked(value, [...this.#steps, index], this.#ledger));
  }

  /** The fields of an object, which do not count as handled yet. */
  entries(): [string, Tracked][] {
    if (!this.exists) return this.#done([]);
    if (!isObject(this.#value)) return this.#wrongType("an object", []);
    const keys = Object.keys(this.#value);
    if (keys.length === 0) this.ignore();
    return keys.map((key) => [key, this.field(key)]);
  }

  text(): string | undefined {
    return this.#typed("a string", (value) => typeof value === "string");
  }

  flag(): boolean | undefined {
    return this.#typed("true or false", (value) => typeof value === "boolean");
  }

  integer(): number | undefined {
    return this.#typed("an integer", (value): value is number => Number.isInteger(value));
  }

  /** The texts of several fields. */
  textsOf<const Names extends readonly string[]>(...names: Names): Each<Names, string | undefined> {
    return names.map((name) => this.field(name).text()) as Each<Names, string | undefined>;
  }

  /** The text, or the first of `known` if there is none. Reports another text than these. */
  oneOf(known: readonly [string, ...string[]], message: string): string {
    const text = this.text() ?? known[0];
    if (!known.includes(text)) this.lose(message);
    return text;
  }

  texts(): string[] {
    return this.list().flatMap((each) => each.text() ?? []);
  }

  /** A map of strings. Undefined if it is missing or empty. */
  map(): Record<string, string> | undefined {
    const entries = this.entries().flatMap(([key, value]): [string, string][] => {
      const text = value.text();
      return text === undefined ? [] : [[key, text]];
    });
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  }

  /** The whole value, with everything below it. */
  take(): JsonValue | undefined {
    return this.#done(this.#value);
  }

  /** Looks at the value without handling it. */
  peek(): JsonValue | undefined {
    return this.#value;
  }

  /** Records that this field, with everything below it, needs nothing in Inlay. With names, its fields of these names. */
  ignore(...names: readonly string[]): void {
    for (const each of names.length === 0 ? [this] : this.fields(...names)) this.#ledger.handled.add(each.key);
  }

  /** Ignores the fields of an object whose keys are not converted. */
  ignoreUnless(isConverted: (key: string) => boolean): void {
    for (const [key, field] of this.entries()) if (!isConverted(key)) field.ignore();
  }

  /** Reports that this field is not converted, with what to do instead. Does nothing if the field is missing or empty. */
  refuse(message: string): void {
    if (!isEmpty(this.#value)) this.lose(message);
    this.ignore();
  }

  /** Refuses each of some fields with its message. */
  refuseFields(messages: Readonly<Record<string, string>>): void {
    for (const [name, message] of Object.entries(messages)) this.field(name).refuse(message);
  }

  /** Reports something that is not converted; `below` counts lines from the line of this field. */
  lose(message: string, below = 0): void {
    const { document, parts, lost } = this.#ledger;
    const part = this.#steps
      .map((_, at) => JSON.stringify(this.#steps.slice(0, this.#steps.length - at)))
      .find((key) => parts.has(key));
    const path = pathText(this.#steps);
    const text = plain(path === "" ? message : `${path}: ${message}`);
    const { line, column } = document.positionOf(this.#steps);
    const position = below === 0 ? { line, column } : { line: line + below, column: 1 };
    const mistake: Mistake = { file: document.file, ...position, reason: "NotSupported", message: text };
    if (!lost.some((each) => each.mistake.message === text && each.mistake.line === mistake.line))
      lost.push({ part, steps: this.#steps, mistake });
  }

  /** Whether everything in it is handled, and nothing in it was reported so far. Does not look below the fields in `except`. */
  isWhole(except: readonly Tracked[] = []): boolean {
    if (this.#value === undefined) return true;
    const isBelow = (steps: Steps, above: Steps) => above.every((step, at) => steps[at] === step);
    const handled = new Set([...this.#ledger.handled, ...except.map((each) => each.key)]);
    const isLost = this.#ledger.lost.some(
      ({ steps }) => isBelow(steps, this.#steps) && !except.some((each) => isBelow(steps, each.#steps)),
    );
    return !isLost && unhandled({ handled }, this.#value, this.#steps)?.length === 0;
  }

  /** Everything in the object that is not converted, in the order of the lines: call it after the conversion. */
  allLost(): Loss[] {
    for (const steps of unhandled(this.#ledger, this.#ledger.document.object, []) ?? [[]])
      new Tracked(null, steps, this.#ledger).lose(UNKNOWN);
    return this.#ledger.lost.toSorted((a, b) => a.mistake.line - b.mistake.line);
  }

  #typed<T extends JsonValue>(expected: string, isTyped: (value: JsonValue) => value is T): T | undefined {
    if (!this.exists) return this.#done(undefined);
    const value = this.#value as JsonValue;
    return isTyped(value) ? this.#done(value) : this.#wrongType(expected, undefined);
  }

  #done<T>(value: T): T {
    this.ignore();
    return value;
  }

  #wrongType<T>(expected: string, otherwise: T): T {
    this.refuse(`must be ${expected}; correct it`);
    return otherwise;
  }
}

function isEmpty(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0);
}

/** The largest parts of the value without a handled field. Undefined if that is the whole value. `key` is the JSON of the steps. */
function unhandled(
  ledger: Pick<Ledger, "handled">,
  value: JsonValue,
  steps: Steps,
  key = JSON.stringify(steps),
): Steps[] | undefined {
  if (ledger.handled.has(key)) return [];
  const children: [string | number, JsonValue][] = Array.isArray(value)
    ? [...value.entries()]
    : isObject(value)
      ? Object.entries(value as JsonObject)
      : [];
  const above = steps.length === 0 ? "[" : `${key.slice(0, -1)},`;
  const below = children.map(([step, child]) =>
    unhandled(ledger, child, [...steps, step], `${above}${JSON.stringify(step)}]`),
  );
  if (below.every((each) => each === undefined)) return undefined;
  return below.flatMap((each, at) => each ?? [[...steps, (children[at] as (typeof children)[number])[0]]]);
}

function pathText(steps: Steps): string {
  const segments = steps.map(
    (step): Segment => (typeof step === "number" ? { kind: "index", index: step } : keySegment(step)),
  );
  try {
    return String(new FieldPath(segments));
  } catch {
    return steps.join(".");
  }
}
