/** Limits the fields of objects that a stream keeps for each namespace. Objects beyond the limit are kept without their fields. */
import { isObject } from "../apimachinery/json.ts";
import type { CachedObject } from "./cached-object.ts";

/** The estimated bytes for one namespace: fields of 10,000 usual claims take half of it. */
const MAX_COST = 32 * 1024 ** 2;
/** The estimated bytes of a value beyond its text. */
const PER_VALUE = 32;

export class KeptFields {
  readonly #most: number;
  readonly #costs = new Map<string, number>();
  /** The objects that count. */
  #counted = new WeakSet<CachedObject>();

  constructor(most = MAX_COST) {
    this.#most = most;
  }

  /** The object in place of `before`, without its fields if they are too large. The namespace is that of its key. */
  keep(key: string, after: CachedObject, before: CachedObject | undefined): CachedObject {
    const { fields, ...rest } = after;
    if (fields === undefined) return after;
    this.gone(key, before);
    const namespace = namespaceIn(key);
    const used = this.#costs.get(namespace) ?? 0;
    const cost = costOf(fields, this.#most - used);
    const kept: CachedObject =
      used + cost > this.#most ? { ...rest, fields: {}, isTooLarge: true } : { ...after, fieldsCost: cost };
    this.#count(namespace, kept);
    return kept;
  }

  gone(key: string, before: CachedObject | undefined): void {
    if (before === undefined || !this.#counted.delete(before)) return;
    const namespace = namespaceIn(key);
    const left = (this.#costs.get(namespace) ?? 0) - (before.fieldsCost ?? 0);
    if (left > 0) this.#costs.set(namespace, left);
    else this.#costs.delete(namespace);
  }

  /** Counts these objects alone: some of a list that failed are not kept. */
  recount(keys: Iterable<string>, get: (key: string) => CachedObject | undefined): void {
    this.#costs.clear();
    this.#counted = new WeakSet();
    for (const key of keys) {
      const object = get(key);
      if (object?.fields !== undefined) this.#count(namespaceIn(key), object);
    }
  }

  #count(namespace: string, object: CachedObject): void {
    this.#counted.add(object);
    this.#costs.set(namespace, (this.#costs.get(namespace) ?? 0) + (object.fieldsCost ?? 0));
  }
}

const namespaceIn = (key: string) => key.slice(0, Math.max(0, key.indexOf("/")));

/** The estimated memory of a value. Stops when that is more than `most`. */
function costOf(value: unknown, most: number): number {
  let cost = PER_VALUE;
  if (typeof value === "string") return cost + value.length;
  if (Array.isArray(value)) {
    for (const each of value) {
      cost += costOf(each, most - cost);
      if (cost > most) return cost;
    }
  } else if (isObject(value))
    for (const key in value) {
      cost += key.length + costOf(value[key], most - cost);
      if (cost > most) return cost;
    }
  return cost;
}
