/** Ranks the claims of a namespace by age: of too many, the oldest ones count. Pure. */

import { insertionPoint } from "../../apimachinery/insertion-point.ts";

/** When a claim was created, in seconds of the epoch, and its key. */
interface Ranked {
  readonly createdAt: number;
  readonly key: string;
}

export class ClaimRanks {
  readonly #most: number;
  /** From the oldest. */
  #ranked: Ranked[] = [];
  readonly #known = new Map<string, Ranked>();

  /** `most` claims count. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Replaces all claims. */
  reset(claims: Iterable<Ranked>): void {
    this.#ranked = [...claims].sort(compare);
    this.#known.clear();
    for (const each of this.#ranked) this.#known.set(each.key, each);
  }

  /** Adds a claim, or replaces the claim of that key. Returns the key of the other claim that counts no longer, or from now on. */
  add(claim: Ranked): string | undefined {
    const before = this.#known.get(claim.key);
    if (before?.createdAt === claim.createdAt) return undefined;
    const next = before && this.remove(claim.key);
    const at = this.#placeOf(claim);
    this.#ranked.splice(at, 0, claim);
    this.#known.set(claim.key, claim);
    return at < this.#most ? this.#ranked[this.#most]?.key : next;
  }

  /** Removes a claim. Returns the key of the claim that counts from now on. */
  remove(key: string): string | undefined {
    const before = this.#known.get(key);
    if (before === undefined) return undefined;
    const at = this.#placeOf(before);
    this.#ranked.splice(at, 1);
    this.#known.delete(key);
    return at < this.#most ? this.#ranked[this.#most - 1]?.key : undefined;
  }

  counts(key: string): boolean {
    const claim = this.#known.get(key);
    return this.#ranked.length <= this.#most || (claim !== undefined && this.#placeOf(claim) < this.#most);
  }

  /** The number of older claims. */
  #placeOf(claim: Ranked): number {
    return insertionPoint(this.#ranked, (each) => compare(each, claim) < 0);
  }
}

const compare = (a: Ranked, b: Ranked): number =>
  a.createdAt - b.createdAt || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
