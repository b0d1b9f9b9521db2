/**
 * Parses answers of the API server. The text of a large answer is reduced first: `fieldsV1` of managedFields list each key of an object,
 * and cost several times more memory parsed than as text. The items of a large list are parsed one by one.
 */
import { isObject, parseJson, withoutDeepLevels } from "../apimachinery/json.ts";
import {
  Edited,
  elements,
  endOfValue,
  isListAt,
  isObjectAt,
  member,
  members,
  type Part,
  parseInParts,
  partsOf,
  startOfValue,
} from "../apimachinery/json-text.ts";
import type { JsonValue, KubeObject } from "../apimachinery/objects.ts";

/**
 * What an answer contains: an object whose owners of fields are needed, an object that is only read for its values, a list, or an event of a
 * watch. In all but the first, `fieldsV1` may contain only the keys in DATA.
 */
export type AnswerForm = "whole" | "values" | "list" | "event";

export interface List {
  items?: KubeObject[];
  metadata?: { resourceVersion?: string; continue?: string };
  /** The length of each item as text, if the list was large. */
  lengths?: number[];
}

/**
 * The most characters of an object. etcd stores up to 1.5 MiB by default, and as JSON, a control character takes six bytes. The same limit
 * holds for a line of a stream.
 */
export const MAX_CHARACTERS = 16 * 1024 ** 2;
/** The most characters of what administrators of the cluster define: the kinds of all groups, or the schemas of a group. */
export const MAX_DEFINITION_CHARACTERS = 128 * 1024 ** 2;
/** The most characters of managedFields, where they are needed. Parsed, they take ten times as much memory. */
export const MAX_OWNERS_CHARACTERS = 1024 ** 2;
/** The most entries there. The API server merges old ones of updates, but not those of applies, such as of bindings. */
export const MAX_OWNERS = 500;
/** The length from which it pays to reduce a text, in characters. */
export const LARGE_CHARACTERS = 64 * 1024;
/** They show when the data of a Secret or ConfigMap changed. */
const DATA = ["f:data", "f:binaryData"];

/** Parses in steps of some milliseconds. Throws SyntaxError. */
export function* parseAnswer(text: string, form: AnswerForm): Generator<void, JsonValue, void> {
  if (text.length < LARGE_CHARACTERS) return parseJson(text);
  if (form === "list") return yield* parseList(text);
  const reduced = form === "whole" ? text : withoutOwners(text, form);
  yield;
  return yield* parseLarge(reduced);
}

function* parseLarge(text: string): Generator<void, JsonValue, void> {
  const shallow = withoutDeepLevels(text);
  yield;
  return yield* parseInParts(shallow);
}

function* parseList(text: string): Generator<void, JsonValue, void> {
  const rest = new Edited(text);
  const lengths: number[] = [];
  let parts: Part[] = [];
  member(text, startOfValue(text), "items", (at) => {
    if (!isListAt(text, at)) return endOfValue(text, at);
    const found = partsOf(text, at, lengths);
    parts = found.parts;
    rest.replace(at, found.end, "[]");
    return found.end;
  });
  const items: JsonValue[] = [];
  for (const { from, to, isLarge } of parts) {
    yield;
    const part = text.slice(from, to);
    if (isLarge) items.push(yield* parseLarge(withoutOwners(part, "values")));
    else items.push(...(parseJson(`[${part}]`) as JsonValue[]));
  }
  const list = parseJson(rest.upTo(text.length));
  return isObject(list) && parts.length > 0 ? { ...list, items, lengths } : list;
}

/** The text with `fieldsV1` reduced. */
export function withoutOwners(text: string, form: "values" | "event"): string {
  const edited = new Edited(text);
  const start = startOfValue(text);
  if (form === "values") reduce(edited, text, start);
  else member(text, start, "object", (at) => reduce(edited, text, at));
  return edited.upTo(text.length);
}

/** The length of the managedFields of an object, as text. */
export function lengthOfOwners(text: string): number {
  let length = 0;
  managedFields(text, startOfValue(text), (at) => {
    const end = endOfValue(text, at);
    length += end - at;
    return end;
  });
  return length;
}

/**
 * The metadata of the object in an event of which only the beginning was read; undefined if they are not in it. Events have the type before
 * the object, and objects have their metadata before their content, unless a kind has other fields of its own.
 */
export function beginningOfEvent(text: string): { type: string; object: KubeObject } | undefined {
  let type: unknown;
  const object: Record<string, unknown> = {};
  const whole = (at: number, take: (value: unknown) => void) => {
    const end = endOfValue(text, at);
    if (end <= text.length) take(parseJson(text.slice(at, end)));
    return end;
  };
  const reduced = withoutOwners(text, "event");
  if (reduced !== text) return beginningOfEvent(reduced);
  members(text, startOfValue(text), (key, at) => {
    if (key === "type") return whole(at, (value) => (type = value));
    if (key !== "object") return endOfValue(text, at);
    return members(text, at, (field, start) =>
      field === "metadata" || field === "kind" || field === "apiVersion"
        ? whole(start, (value) => (object[field] = value))
        : endOfValue(text, start),
    );
  });
  return typeof type === "string" && object["metadata"] !== undefined
    ? { type, object: object as unknown as KubeObject }
    : undefined;
}

/** Calls `each` with the position of the managedFields of the object at `start`. Returns the position after the object. */
const managedFields = (text: string, start: number, each: (at: number) => number): number =>
  member(text, start, "metadata", (at) => member(text, at, "managedFields", each));

/** Reduces the object at `start`. Returns the position after it. */
function reduce(edited: Edited, text: string, start: number): number {
  const fieldsV1 = (at: number) => {
    if (!isObjectAt(text, at)) return endOfValue(text, at);
    const kept = new Set<string>();
    const end = members(text, at, (key, value) => {
      if (DATA.includes(key)) kept.add(`"${key}":{}`);
      return endOfValue(text, value);
    });
    edited.replace(at, end, `{${[...kept].join()}}`);
    return end;
  };
  const entry = (at: number) => member(text, at, "fieldsV1", fieldsV1);
  return managedFields(text, start, (at) => elements(text, at, entry));
}
