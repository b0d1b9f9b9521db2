/**
 * Items of many groups come in, each under a key; they go out by turns, one group's first after another's, so that the
 * many of one don't keep the few of others waiting.
 */
export class RoundRobinQueue<T> {
  readonly #most: number;
  /** In the order of their turns, none of them empty; the items of each in the order of their coming. */
  readonly #groups = new Map<string, Map<string, T>>();
  #size = 0;

  /** Keeps so many items at most. */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most;
  }

  get size(): number {
    return this.#size;
  }

  /** An item takes the place of what waits under its key. Where too much waits, the last of the group that has most is dropped. */
  set(group: string, key: string, item: T): void {
    const items = this.#groups.get(group) ?? new Map<string, T>();
    this.#groups.set(group, items);
    this.#size -= items.size;
    items.set(key, item);
    this.#size += items.size;
    if (this.#size > this.#most) this.#dropOne();
  }

  /** Takes out the first item of the group whose turn it is, of those that may have one. Its next comes after those of all others. */
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

  /** At each item of a full backlog, so nothing is made for it. */
  #dropOne(): void {
    let [most, size] = ["", 0];
    for (const [group, items] of this.#groups) if (items.size > size) [most, size] = [group, items.size];
    const last = [...(this.#groups.get(most)?.keys() ?? [])].at(-1);
    if (last !== undefined) this.delete(most, last);
  }
}
