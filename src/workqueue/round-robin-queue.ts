/** A queue of items with keys, in groups that take turns, so that a group with many items does not delay a group with few. */
import { getOrInsert } from "../apimachinery/maps.ts";

export class RoundRobinQueue<T> {
  readonly #most: number;
  /** Groups in the order of their turns, none of them empty; the items of each in the order of arrival. */
  readonly #groups = new Map<string, Map<string, T>>();
  #size = 0;

  /** Keeps at most `most` items. */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Replaces the item with the same key. If the queue is too long, the last item of the largest group is dropped. Returns whether one was
   * dropped.
   */
  set(group: string, key: string, item: T): boolean {
    const items = getOrInsert(this.#groups, group, () => new Map<string, T>());
    this.#size -= items.size;
    items.set(key, item);
    this.#size += items.size;
    if (this.#size <= this.#most) return false;
    this.#dropOne();
    return true;
  }

  /** Removes and returns the first item of the next group that `may` permits. The group then goes behind all others. */
  next(may: (group: string) => boolean = () => true): T | undefined {
    for (const [group, items] of this.#groups) {
      const [first] = items;
      if (first === undefined || !may(group)) continue;
      const [key, item] = first;
      this.delete(group, key);
      if (this.#groups.delete(group)) this.#groups.set(group, items);
      return item;
    }
    return undefined;
  }

  delete(group: string, key: string): void {
    const items = this.#groups.get(group);
    if (items?.delete(key)) this.#size--;
    if (items?.size === 0) this.#groups.delete(group);
  }

  clear(): void {
    this.#groups.clear();
    this.#size = 0;
  }

  /** Called for each item of a full queue, so it avoids allocations. */
  #dropOne(): void {
    let [most, size] = ["", 0];
    for (const [group, items] of this.#groups) if (items.size > size) [most, size] = [group, items.size];
    const last = [...(this.#groups.get(most)?.keys() ?? [])].at(-1);
    if (last !== undefined) this.delete(most, last);
  }
}
