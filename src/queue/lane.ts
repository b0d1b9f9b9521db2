/**
 * Keys of many groups come in; they go out by turns, one group's first after another's, so that the many keys of one don't
 * keep the few of others waiting.
 */
export class Lane {
  readonly #groupOf: (key: string) => string;
  /** In the order of their turns, none of them empty. */
  readonly #groups = new Map<string, Set<string>>();
  #size = 0;

  constructor(groupOf: (key: string) => string) {
    this.#groupOf = groupOf;
  }

  get size(): number {
    return this.#size;
  }

  add(key: string): void {
    const group = this.#groupOf(key);
    const keys = this.#groups.get(group) ?? new Set();
    this.#groups.set(group, keys);
    this.#size -= keys.size;
    keys.add(key);
    this.#size += keys.size;
  }

  /** The first key of the group whose turn it is, of those that may begin another. */
  first(mayBegin: (group: string) => boolean): string | undefined {
    for (const [group, [key]] of this.#groups) if (mayBegin(group)) return key;
    return undefined;
  }

  /** Takes a key out whose turn it was: that of its group comes after those of all others. */
  take(key: string): void {
    const group = this.#groupOf(key);
    const keys = this.#groups.get(group);
    this.delete(key);
    if (!this.#groups.delete(group)) return;
    this.#groups.set(group, keys as Set<string>);
  }

  delete(key: string): void {
    const group = this.#groupOf(key);
    const keys = this.#groups.get(group);
    if (keys?.delete(key)) this.#size -= 1;
    if (keys?.size === 0) this.#groups.delete(group);
  }

  clear(): void {
    this.#groups.clear();
    this.#size = 0;
  }
}
