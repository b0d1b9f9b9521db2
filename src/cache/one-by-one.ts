/** Counts the objects that have a stream of their own, by dependent. Each dependent has a limit. */

export class OneByOne {
  readonly #most: number;
  readonly #hasRoom: (dependent: string) => void;
  readonly #counts = new Map<string, number>();
  /** The dependents that are about to be called. */
  readonly #called = new Set<string>();

  /** `hasRoom` is called soon after a slot of a full dependent is released. */
  constructor(most: number, hasRoom: (dependent: string) => void) {
    this.#most = most;
    this.#hasRoom = hasRoom;
  }

  /** Takes a slot if one is free. Returns whether it did. */
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
    // If the dependent was not full, none of its subscriptions waits for a slot.
    if (count < this.#most || this.#called.has(dependent)) return;
    this.#called.add(dependent);
    queueMicrotask(() => {
      this.#called.delete(dependent);
      this.#hasRoom(dependent);
    });
  }
}
