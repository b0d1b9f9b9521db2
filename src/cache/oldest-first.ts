/** The objects of a namespace by age, for a limit of which only the oldest ones count. */
import { insertionPoint } from "../apimachinery/insertion-point.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import type { ObjectMeta } from "../apimachinery/objects.ts";
import { objectKey } from "./reflector.ts";

/** When an object was created, in seconds of the epoch, and its key. */
export interface Ranked {
  readonly createdAt: number;
  readonly key: string;
}

/** The objects of one namespace. */
export class AgeRanks {
  readonly #most: number;
  /** From the oldest. */
  #ranked: Ranked[] = [];
  readonly #known = new Map<string, Ranked>();

  /** `most` objects count. */
  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#ranked.length;
  }

  /** Replaces all objects. */
  reset(objects: Iterable<Ranked>): void {
    this.#ranked = [...objects].sort(compare);
    this.#known.clear();
    for (const each of this.#ranked) this.#known.set(each.key, each);
  }

  /** Adds an object, or replaces the object of that key. Returns the key of the other object that counts no longer, or from now on. */
  add(object: Ranked): string | undefined {
    const before = this.#known.get(object.key);
    if (before?.createdAt === object.createdAt) return undefined;
    const next = before && this.remove(object.key);
    const at = this.#placeOf(object);
    this.#ranked.splice(at, 0, object);
    this.#known.set(object.key, object);
    return at < this.#most ? this.#ranked[this.#most]?.key : next;
  }

  /** Removes an object. Returns the key of the object that counts from now on. */
  remove(key: string): string | undefined {
    const before = this.#known.get(key);
    if (before === undefined) return undefined;
    const at = this.#placeOf(before);
    this.#ranked.splice(at, 1);
    this.#known.delete(key);
    return at < this.#most ? this.#ranked[this.#most - 1]?.key : undefined;
  }

  counts(key: string): boolean {
    const object = this.#known.get(key);
    return this.size <= this.#most || (object !== undefined && this.numberBeyond(object) === undefined);
  }

  /** From 1 for the oldest one. Undefined for an object that counts. */
  numberBeyond(object: Ranked): number | undefined {
    const number = this.#placeOf(object) + 1;
    return number > this.#most ? number : undefined;
  }

  /** The number of older objects. */
  #placeOf(object: Ranked): number {
    return insertionPoint(this.#ranked, (each) => compare(each, object) < 0);
  }
}

const compare = (a: Ranked, b: Ranked): number =>
  a.createdAt - b.createdAt || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);

type Metadata = Pick<ObjectMeta, "name" | "namespace" | "creationTimestamp">;

/** The objects of all namespaces. */
export class OldestFirst {
  readonly #limit: number;
  readonly #namespaces = new Map<string, AgeRanks>();

  /** `limit`: how many count in each namespace. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the key of the object that no longer counts because of it. */
  add(metadata: Metadata): string | undefined {
    return this.#ranksOf(metadata).add(ranked(metadata));
  }

  /** Returns the key of the object that counts from now on. */
  delete(metadata: Metadata): string | undefined {
    const ranks = this.#ranksOf(metadata);
    const next = ranks.remove(ranked(metadata).key);
    if (ranks.size === 0) this.#namespaces.delete(metadata.namespace ?? "");
    return next;
  }

  /** From 1 for the oldest of the namespace. Undefined for an object that counts. */
  numberBeyond(metadata: Metadata): number | undefined {
    return this.#namespaces.get(metadata.namespace ?? "")?.numberBeyond(ranked(metadata));
  }

  #ranksOf({ namespace = "" }: Metadata): AgeRanks {
    return getOrInsert(this.#namespaces, namespace, () => new AgeRanks(this.#limit));
  }
}

const ranked = ({ namespace, name, creationTimestamp = "" }: Metadata): Ranked => ({
  key: objectKey(namespace, name),
  createdAt: Date.parse(creationTimestamp) / 1_000 || 0,
});
