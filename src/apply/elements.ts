/** Matches elements of lists with their names in fieldsV1, by an index: to compare each with each takes minutes for thousands. */
import { type ElementCondition, inOrder } from "../apimachinery/field-path.ts";
import { isObject, parseJson, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";

/** What a name tells of an element: itself, for one of a set, or its keys. */
type Told = { value: JsonValue } | { keys: JsonObject };

/** How a value is written, alike for what is the same JSON. */
export function textOf(value: JsonValue | undefined): string {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return stringifyJson(value ?? null);
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${stringifyJson(key)}:${textOf(value[key])}`);
  return `{${entries.join()}}`;
}

const fieldsText = (object: JsonObject, keys: readonly string[]) => keys.map((key) => textOf(object[key])).join();
const conditionsText = (conditions: readonly ElementCondition[]) =>
  stringifyJson(conditions.map(({ key, value }) => [key, value]));

/** Names that tell the same keys, with indexes by some of those. */
interface Group {
  keys: readonly string[];
  told: (readonly [name: string, keys: JsonObject])[];
  indexes: Map<string, Map<string, string[]>>;
}

/** The names of elements in one node of fieldsV1, or in several. */
class Names {
  readonly #values = new Map<string, string[]>();
  readonly #groups = new Map<string, Group>();
  #byConditions: Map<string, string> | undefined;

  constructor(names: Iterable<string>) {
    for (const name of names) {
      const told = toldBy(name);
      if (told === undefined) continue;
      if ("value" in told) add(this.#values, textOf(told.value), name);
      else {
        const keys = Object.keys(told.keys).sort();
        const group: Group = this.#groups.get(keys.join("\n")) ?? { keys, told: [], indexes: new Map() };
        this.#groups.set(keys.join("\n"), group);
        group.told.push([name, told.keys]);
      }
    }
  }

  /** All names that mean an element: that have its keys, each of them. */
  of(element: JsonValue): readonly string[] {
    const own = this.#values.get(textOf(element)) ?? [];
    if (!isObject(element)) return own;
    const groups = [...this.#groups.values()].filter(({ keys }) => keys.every((key) => Object.hasOwn(element, key)));
    return [...own, ...groups.flatMap((group) => having(group, element, group.keys))];
  }

  /** The first name that may mean an element, some of whose keys may have been left to their defaults. */
  first(element: JsonValue): string | undefined {
    const [own] = this.#values.get(textOf(element)) ?? [];
    if (own !== undefined || !isObject(element)) return own;
    for (const group of this.#groups.values()) {
      const written = group.keys.filter((key) => Object.hasOwn(element, key));
      const [name] = having(group, element, written);
      if (name !== undefined) return name;
    }
    return undefined;
  }

  /** The name of the element of which all of that holds, and no more is told. */
  by(conditions: readonly ElementCondition[]): string | undefined {
    const told = () => [...this.#groups.values()].flatMap((group) => group.told);
    this.#byConditions ??= new Map(told().map(([name, keys]) => [conditionsText(conditionsIn(keys)), name]));
    return this.#byConditions.get(conditionsText(conditions));
  }
}

/** The names in a group that have some of its keys as the element has. */
function having({ told, indexes }: Group, element: JsonObject, some: readonly string[]): readonly string[] {
  const id = some.join("\n");
  const index = indexes.get(id) ?? new Map<string, string[]>();
  if (!indexes.has(id)) for (const [name, keys] of told) add(index, fieldsText(keys, some), name);
  indexes.set(id, index);
  return index.get(fieldsText(element, some)) ?? [];
}

const names = new WeakMap<JsonObject, Names>();

export function namesIn(fields: JsonObject): Names {
  const known = names.get(fields) ?? new Names(Object.keys(fields));
  names.set(fields, known);
  return known;
}

/** The same, of several nodes. */
export const namesAmong = (all: Iterable<string>): Names => new Names(all);

const places = new WeakMap<readonly JsonValue[], Map<string, Map<string, number>>>();

/** The first place in a list of what a name means, or -1. With `defaults`, keys that an element does not have may be as told. */
export function placeOfName(list: readonly JsonValue[], name: string, { defaults = false } = {}): number {
  const told = toldBy(name);
  if (told === undefined) return -1;
  if (!defaults) {
    const keys = "keys" in told ? Object.keys(told.keys).sort() : undefined;
    return indexOf(list, keys).get("keys" in told ? fieldsText(told.keys, keys as string[]) : textOf(told.value)) ?? -1;
  }
  const exact = placeOfName(list, name);
  if (exact >= 0 || !("keys" in told)) return exact;
  const entries = Object.entries(told.keys);
  return list.findIndex(
    (each) =>
      isObject(each) &&
      entries.every(([key, value]) => !Object.hasOwn(each, key) || textOf(each[key]) === textOf(value)),
  );
}

function indexOf(list: readonly JsonValue[], keys: readonly string[] | undefined): Map<string, number> {
  const known = places.get(list) ?? new Map<string, Map<string, number>>();
  places.set(list, known);
  const id = keys?.join("\n") ?? "";
  const index = known.get(id) ?? new Map<string, number>();
  if (known.has(id)) return index;
  known.set(id, index);
  for (const [at, element] of list.entries()) {
    const isTold = keys === undefined || (isObject(element) && keys.every((key) => Object.hasOwn(element, key)));
    const text = isTold ? (keys === undefined ? textOf(element) : fieldsText(element as JsonObject, keys)) : undefined;
    if (text !== undefined && !index.has(text)) index.set(text, at);
  }
  return index;
}

function toldBy(name: string): Told | undefined {
  if (name.startsWith("v:")) return { value: parseJson(name.slice(2)) };
  return name.startsWith("k:") ? { keys: parseJson(name.slice(2)) as JsonObject } : undefined;
}

export function conditionsIn(keys: JsonObject): ElementCondition[] {
  return inOrder(Object.entries(keys).map(([key, value]): ElementCondition => ({ key, value: String(value) })));
}

function add(index: Map<string, string[]>, text: string, name: string): void {
  const known = index.get(text);
  if (known === undefined) index.set(text, [name]);
  else known.push(name);
}
