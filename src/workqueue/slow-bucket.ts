/** Limits the rate of work that may have to be repeated without a result. Groups take turns. */
import { RoundRobinQueue } from "./round-robin-queue.ts";

export class SlowBucket {
  readonly #everyMs: number;
  readonly #waiting = new RoundRobinQueue<() => void>();
  #count = 0;
  /** Runs while the last turn is too recent for another. */
  #timer: NodeJS.Timeout | undefined;

  constructor(perSecond: number) {
    this.#everyMs = 1_000 / perSecond;
  }

  /** Resolves when it is the group's turn, or when `signal` aborts. */
  async take(group: string, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const key = `${this.#count++}`;
    const onAbort = () => {
      this.#waiting.delete(group, key);
      resolve();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.set(group, key, resolve);
    this.#grant();
    await promise;
    signal.removeEventListener("abort", onAbort);
  }

  /** The turn had a result: the next turn comes at once, so that work that waits for the same thing continues together. */
  refund(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#grant();
  }

  #grant(): void {
    if (this.#timer !== undefined) return;
    const begin = this.#waiting.next();
    if (begin === undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#grant();
    }, this.#everyMs).unref();
    begin();
  }
}
