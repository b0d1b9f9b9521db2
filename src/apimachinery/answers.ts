/** Shares requests between those that ask the same, and uses each answer for some time. No I/O. */
import { BoundedMap } from "./maps.ts";

export class Answers<K, V> {
  readonly #known: BoundedMap<K, { answer: Promise<V>; since: number }>;
  readonly #livesMs: number;

  /** Keeps this number of answers, the newest, and none for longer than `livesMs`. */
  constructor(most: number, livesMs = Number.POSITIVE_INFINITY) {
    this.#known = new BoundedMap(most);
    this.#livesMs = livesMs;
  }

  /** The answer to a request that was sent at most `withinMs` ago, or else to one that `ask` sends. A failure is not kept. */
  get(key: K, withinMs: number, ask: () => Promise<V>): Promise<V> {
    const known = this.#known.get(key);
    if (known !== undefined && Date.now() < known.since + withinMs) return known.answer;
    this.#known.dropOutdated(({ since }) => Date.now() >= since + this.#livesMs);
    const next = { answer: ask(), since: Date.now() };
    this.#known.set(key, next);
    next.answer.catch(() => {
      if (this.#known.get(key) === next) this.#known.delete(key);
    });
    return next.answer;
  }

  /** The next call of `get` asks. */
  forget(key: K): void {
    this.#known.delete(key);
  }
}
