/**
 * Measures how long each change of a source or target takes until the write that follows is accepted. The time begins when the watch event
 * arrives, so it excludes the API server's delay. It is exact to a millisecond, by the clock of this process. Retries count from the first
 * attempt. Changes that happen while no watch is open are not measured.
 */
export class Propagation {
  /** When the first change arrived that no reconcile has handled yet, by binding. */
  readonly #waiting = new Map<string, number>();
  readonly #underWay = new Map<string, number>();
  readonly #observe: (seconds: number) => void;
  readonly #now: () => number;

  constructor(observe: (seconds: number) => void, now: () => number = () => performance.now()) {
    this.#observe = observe;
    this.#now = now;
  }

  /** An object that the binding depends on has changed. */
  changed(binding: string): void {
    if (!this.#waiting.has(binding)) this.#waiting.set(binding, this.#now());
  }

  /** Runs a reconcile of the binding. `isFailure` says whether the result is retried. */
  async during<T>(binding: string, reconcile: () => Promise<T>, isFailure: (result: T) => boolean): Promise<T> {
    const since = this.#waiting.get(binding);
    this.#waiting.delete(binding);
    if (since !== undefined) this.#underWay.set(binding, since);
    let failed = true;
    try {
      const result = await reconcile();
      failed = isFailure(result);
      return result;
    } finally {
      // Only if nothing was written: another target may wait days for a permission.
      if (failed && since !== undefined && this.#underWay.has(binding)) this.#waiting.set(binding, since);
      this.#underWay.delete(binding);
    }
  }

  /** A target of the binding was written. */
  wrote(binding: string): void {
    const since = this.#underWay.get(binding);
    if (since === undefined) return;
    this.#observe((this.#now() - since) / 1000);
    this.#underWay.delete(binding);
  }
}
