/**
 * Limits what all streams together keep of the objects of a namespace: the fields that subscriptions name, what SecretProviderClasses
 * bring, and the facts about workloads. Objects beyond the limit are kept without these.
 */
import { isObject } from "../apimachinery/json.ts";
import type { CachedObject } from "./cached-object.ts";

/**
 * The estimated bytes for one namespace: fields of 10,000 usual claims take half of it, 10,000 usual classes an eighth, and 15,000 usual
 * workloads take all.
 */
const MAX_COST = 32 * 1024 ** 2;
/** The estimated bytes of a value beyond its text. */
const PER_VALUE = 32;

/** The estimated bytes in all streams, by the namespace that the streams count for and that of the objects. */
export class KeptTotals {
  readonly #most: number;
  readonly #costs = new Map<string, number>();

  constructor(most = MAX_COST) {
    this.#most = most;
  }

  roomFor(key: string): number {
    return this.#most - (this.#costs.get(key) ?? 0);
  }

  add(key: string, cost: number): void {
    const sum = (this.#costs.get(key) ?? 0) + cost;
    if (sum > 0) this.#costs.set(key, sum);
    else this.#costs.delete(key);
  }
}

/** What one stream keeps. */
export class KeptFields {
  readonly #totals: KeptTotals;
  readonly #tenant: string;
  readonly #countsWorkloads: boolean;
  readonly #costs = new Map<string, number>();
  readonly #costOf = new WeakMap<CachedObject, number>();
  /** The objects that count. */
  #counted = new WeakSet<CachedObject>();
  #hasEnded = false;

  /** `tenant` is the namespace that the stream counts for. Without `countsWorkloads`, workloads are kept without a limit. */
  constructor(totals: KeptTotals, tenant = "", countsWorkloads = true) {
    this.#totals = totals;
    this.#tenant = tenant;
    this.#countsWorkloads = countsWorkloads;
  }

  /** The object in place of `before`, without its fields or facts if they are too large. The namespace is that of its key. */
  keep(key: string, after: CachedObject, before: CachedObject | undefined): CachedObject {
    const { fields, synced, workload, ...rest } = after;
    const part = fields ?? synced ?? (this.#countsWorkloads ? workload : undefined);
    if (part === undefined || this.#hasEnded) return after;
    this.gone(key, before);
    const namespace = namespaceIn(key);
    const room = this.#totals.roomFor(this.#keyOf(namespace));
    const cost = costOf(part, room);
    if (cost > room) return { ...rest, ...(fields && { fields: {} }), ...(synced && { synced: [] }), isTooLarge: true };
    this.#costOf.set(after, cost);
    this.#count(namespace, after);
    return after;
  }

  gone(key: string, before: CachedObject | undefined): void {
    if (before === undefined || !this.#counted.delete(before)) return;
    this.#add(namespaceIn(key), -(this.#costOf.get(before) ?? 0));
  }

  /** Counts these objects alone: some of a list that failed are not kept. */
  recount(keys: Iterable<string>, get: (key: string) => CachedObject | undefined): void {
    this.#clear();
    for (const key of keys) {
      const object = get(key);
      if (object !== undefined && this.#costOf.has(object)) this.#count(namespaceIn(key), object);
    }
  }

  /** The stream is closed. */
  end(): void {
    this.#hasEnded = true;
    this.#clear();
  }

  #clear(): void {
    for (const [namespace, cost] of this.#costs) this.#totals.add(this.#keyOf(namespace), -cost);
    this.#costs.clear();
    this.#counted = new WeakSet();
  }

  #count(namespace: string, object: CachedObject): void {
    this.#counted.add(object);
    this.#add(namespace, this.#costOf.get(object) ?? 0);
  }

  #add(namespace: string, cost: number): void {
    this.#totals.add(this.#keyOf(namespace), cost);
    const sum = (this.#costs.get(namespace) ?? 0) + cost;
    if (sum > 0) this.#costs.set(namespace, sum);
    else this.#costs.delete(namespace);
  }

  #keyOf(namespace: string): string {
    return `${this.#tenant}|${namespace}`;
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
