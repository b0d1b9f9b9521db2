/**
 * Merges calls of dependents with many subscriptions. Each call checks all subscriptions of the dependent, and its streams open and close
 * one after the other.
 */

/** A dependent with more subscriptions is called later, by this delay for each. Checking one takes some microseconds. */
const FEW = 64;
const PACE_MS = 5;
const MAX_PACE_MS = 5_000;

export class PacedCalls {
  /** The scheduled calls, by dependent. */
  readonly #calls = new Map<string, NodeJS.Timeout>();

  /** Calls `notify`: at once, or once for all calls during the delay. */
  call(dependent: string, subscriptions: number, notify: () => void): void {
    if (subscriptions <= FEW) notify();
    if (subscriptions <= FEW || this.#calls.has(dependent)) return;
    const ms = Math.min(subscriptions * PACE_MS, MAX_PACE_MS);
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
