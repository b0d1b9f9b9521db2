/**
 * Changes of sources and targets come in as they are seen, and the writes that follow as they are accepted; out goes how
 * long each change was on its way. It begins when the event arrives from the API server's watch, so it tells nothing of
 * how long the API server took to send it; it is exact to a millisecond, by the clock of this process alone. A change
 * that is tried several times is measured from its beginning; one that was made while no watch was open, not at all.
 */
export class Propagation {
  /** When the first change was seen that no reconcile has dealt with yet, by binding. */
  readonly #waiting = new Map<string, number>();
  readonly #underWay = new Map<string, number>();
  readonly #observe: (seconds: number) => void;
  readonly #now: () => number;

  constructor(observe: (seconds: number) => void, now: () => number = () => performance.now()) {
    this.#observe = observe;
    this.#now = now;
  }

  /** Something that the binding depends on changed. */
  changed(binding: string): void {
    if (!this.#waiting.has(binding)) this.#waiting.set(binding, this.#now());
  }

  /** Runs a reconcile of the binding, which says whether it is to be tried again. */
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
      // What was written has arrived, even if another target of the binding waits for a right for days.
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
