/** Limits requests that only improve a message: their rate, and how much work sends them at a time. Nothing waits for its turn. */

const REQUESTS_A_SECOND = 10;
/** Enough for dozens of usual bindings that fail together. */
const BURST = 100;
const AT_A_TIME = 4;

export class ReviewBudget {
  #left = BURST;
  #since = Date.now();
  #running = 0;

  /** Undefined if it is not the turn of the work. The requests of work that has begun may exceed the rate, and later work waits for that. */
  async run<T>(work: () => Promise<T>): Promise<{ result: T } | undefined> {
    const now = Date.now();
    this.#left = Math.min(BURST, this.#left + (Math.max(0, now - this.#since) / 1_000) * REQUESTS_A_SECOND);
    this.#since = now;
    if (this.#left < 1 || this.#running >= AT_A_TIME) return undefined;
    this.#running++;
    try {
      return { result: await work() };
    } finally {
      this.#running--;
    }
  }

  /** Counts one request. */
  spend(): void {
    this.#left--;
  }
}
