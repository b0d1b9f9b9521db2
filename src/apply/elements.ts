/**
 * Matches elements of lists with their names in fieldsV1, by an index: comparing each with each takes minutes for
 * thousands.
 */
import { type ElementCondition, inOrder } from "../apimachinery/field-path.ts";
import { isObject, parseJson, stringifyJson } from "../apimachinery/json.ts";
import { getOrInsert, oncePerObject } from "../apimachinery/maps.ts";
import type { JsonObject, JsonValue } from "../apimachinery/objects.ts";

/** The content of a name in fieldsV1: the value of an element of a set, or the keys of an element of a map list. */
type ElementName = { value: JsonValue } | { keys: JsonObject };

/** The text of a value. Equal JSON values have equal texts. */
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

/** Names with the same set of keys, with indexes by some of these keys. */
interface Group {
  keys: readonly string[];
  members: (readonly [name: string, keys: JsonObject])[];
  indexes: Map<string, Map<string, string[]>>;
}

/** The names of elements in one or several nodes of fieldsV1. */
class Names {
  readonly #values = new Map<string, string[]>();
  readonly #groups = new Map<string, Group>();
  #byConditions: Map<string, string> | undefined;

  constructor(names: Iterable<string>) {
    for (const name of names) {
      const parsed = parseName(name);
      if (parsed === undefined) continue;
      if ("value" in parsed) add(this.#values, textOf(parsed.value), name);
      else {
        const keys = Object.keys(parsed.keys).sort();
        const group = (): Group => ({ keys, members: [], indexes: new Map() });
        getOrInsert(this.#groups, keys.join("\n"), group).members.push([name, parsed.keys]);
      }
    }
  }

  /** All names of an element: those whose keys all match. */
  of(element: JsonValue): readonly string[] {
    const own = this.#values.get(textOf(element)) ?? [];
    if (!isObject(element)) return own;
    const groups = [...this.#groups.values()].filter(({ keys }) => keys.every((key) => Object.hasOwn(element, key)));
    return [...own, ...groups.flatMap((group) => having(group, element, group.keys))];
  }

  /** The first name that may match an element in which keys with defaults may be missing. */
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

  /** The name with exactly these conditions as its keys. */
  by(conditions: readonly ElementCondition[]): string | undefined {
    const members = () => [...this.#groups.values()].flatMap((group) => group.members);
    this.#byConditions ??= new Map(members().map(([name, keys]) => [conditionsText(conditionsIn(keys)), name]));
    return this.#byConditions.get(conditionsText(conditions));
  }
}

/** The names in a group whose keys `some` match the element. */
function having({ members, indexes }: Group, element: JsonObject, some: readonly string[]): readonly string[] {
  const index = getOrInsert(indexes, some.join("\n"), () => {
    const made = new Map<string, string[]>();
    for (const [name, keys] of members) add(made, fieldsText(keys, some), name);
    return made;
  });
  return index.get(fieldsText(element, some)) ?? [];
}

export const namesIn = oncePerObject((fields: JsonObject): Names => new Names(Object.keys(fields)));

/** The names of several nodes. */
export const namesAmong = (all: Iterable<string>): Names => new Names(all);

/** The elements of a list that have the same keys of a name. */
interface Having {
  keys: readonly string[];
  /** The index of the first element, by the text of its values of these keys. */
  places: Map<string, number>;
}

interface Places {
  /** The elements with all keys. */
  whole: Having;
  /** The elements that lack keys, by the keys that they have. */
  partial: Map<string, Having>;
}

/** How many combinations of present keys are found where keys are missing. Lists have one or two keys with defaults. */
const MAX_PARTIAL = 64;

/** Per list, and the keys of names: undefined for the elements of a set. */
const placesOf = new WeakMap<readonly JsonValue[], Map<string | undefined, Places>>();

/**
 * The index of the first element with that name, or -1. With `defaults` and no such element, the first one that differs
 * only by missing keys.
 */
export function placeOfName(list: readonly JsonValue[], name: string, { defaults = false } = {}): number {
  const parsed = parseName(name);
  if (parsed === undefined) return -1;
  if ("value" in parsed) return indexOf(list, undefined).whole.places.get(textOf(parsed.value)) ?? -1;
  const { whole, partial } = indexOf(list, Object.keys(parsed.keys).sort());
  const placeIn = ({ keys, places }: Having) => places.get(fieldsText(parsed.keys, keys));
  const exact = placeIn(whole);
  if (exact !== undefined || !defaults) return exact ?? -1;
  const found = [...partial.values()].flatMap((each) => placeIn(each) ?? []);
  return found.length === 0 ? -1 : Math.min(...found);
}

function indexOf(list: readonly JsonValue[], keys: readonly string[] | undefined): Places {
  const ofList = getOrInsert(placesOf, list, () => new Map<string | undefined, Places>());
  return getOrInsert(ofList, keys?.join("\n"), () => newIndex(list, keys));
}

function newIndex(list: readonly JsonValue[], keys: readonly string[] | undefined): Places {
  const whole: Having = { keys: keys ?? [], places: new Map() };
  const partial = new Map<string, Having>();
  for (const [at, element] of list.entries()) {
    if (keys === undefined) addFirst(whole, textOf(element), at);
    else if (isObject(element)) {
      const present = keys.filter((key) => Object.hasOwn(element, key));
      const having = present.length === keys.length ? whole : partialIn(partial, present);
      if (having !== undefined) addFirst(having, fieldsText(element, present), at);
    }
  }
  return { whole, partial };
}

/** Undefined beyond the limit: then the element is not found, and the binding writes it again. */
function partialIn(partial: Map<string, Having>, keys: readonly string[]): Having | undefined {
  const id = keys.join("\n");
  const known = partial.get(id);
  if (known !== undefined || partial.size >= MAX_PARTIAL) return known;
  const having = { keys, places: new Map<string, number>() };
  partial.set(id, having);
  return having;
}

function addFirst({ places }: Having, text: string, at: number): void {
  if (!places.has(text)) places.set(text, at);
}

function parseName(name: string): ElementName | undefined {
  if (name.startsWith("v:")) return { value: parseJson(name.slice(2)) };
  return name.startsWith("k:") ? { keys: parseJson(name.slice(2)) as JsonObject } : undefined;
}

export function conditionsIn(keys: JsonObject): ElementCondition[] {
  return inOrder(Object.entries(keys).map(([key, value]): ElementCondition => ({ key, value: String(value) })));
}

export const add = <T>(index: Map<string, T[]>, text: string, each: T): number =>
  getOrInsert(index, text, (): T[] => []).push(each);
