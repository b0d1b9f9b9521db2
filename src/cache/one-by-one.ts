/** Counts the objects that are watched one by one for each dependent, of which it may have some only. */

export class OneByOne {
  readonly #most: number;
  readonly #hasRoom: (dependent: string) => void;
  readonly #counts = new Map<string, number>();
  /** Those that are about to be called. */
  readonly #called = new Set<string>();

  /** `hasRoom` is called soon after a place was given back. */
  constructor(most: number, hasRoom: (dependent: string) => void) {
    this.#most = most;
    this.#hasRoom = hasRoom;
  }

  /** Whether there is a place, which it has then. */
  take(dependent: string): boolean {
    const count = this.#counts.get(dependent) ?? 0;
    if (count >= this.#most) return false;
    this.#counts.set(dependent, count + 1);
    return true;
  }

  release(dependent: string): void {
    const count = this.#counts.get(dependent) ?? 0;
    if (count > 1) this.#counts.set(dependent, count - 1);
    else this.#counts.delete(dependent);
    // Before that, there was room for all.
    if (count < this.#most || this.#called.has(dependent)) return;
    this.#called.add(dependent);
    queueMicrotask(() => {
      this.#called.delete(dependent);
      this.#hasRoom(dependent);
    });
  }
}
