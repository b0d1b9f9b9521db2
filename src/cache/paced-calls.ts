/**
 * Puts together the calls of dependents with many subscriptions. One that is called looks at all of them, and its streams come and go one
 * after the other.
 */

/** Who has more subscriptions than these is called so much later for each of them. To look at one takes some microseconds. */
const FEW = 64;
const PACE_MS = 5;
const MOST_PACE_MS = 5_000;

export class PacedCalls {
  /** Those that are about to be made, by dependent. */
  readonly #calls = new Map<string, NodeJS.Timeout>();

  /** Calls `notify`: now, or once for all calls until then. */
  make(dependent: string, subscriptions: number, notify: () => void): void {
    if (subscriptions <= FEW) notify();
    if (subscriptions <= FEW || this.#calls.has(dependent)) return;
    const ms = Math.min(subscriptions * PACE_MS, MOST_PACE_MS);
    const call = setTimeout(() => {
      this.#calls.delete(dependent);
      notify();
    }, ms);
    this.#calls.set(dependent, call.unref());
  }

  stop(): void {
    for (const call of this.#calls.values()) clearTimeout(call);
    this.#calls.clear();
  }
}
