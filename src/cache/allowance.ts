/** Counts what each name holds, up to a limit: the streams of a dependent, or the subscriptions of a namespace. */

export class Allowance {
  readonly #most: number;
  readonly #hasRoom: (name: string) => void;
  readonly #counts = new Map<string, number>();
  /** The names that are about to be called. */
  readonly #called = new Set<string>();

  /** `hasRoom` is called soon after a full name released something. */
  constructor(most: number, hasRoom: (name: string) => void) {
    this.#most = most;
    this.#hasRoom = hasRoom;
  }

  /** Takes one if there is room. Returns whether it did. */
  take(name: string): boolean {
    const count = this.#counts.get(name) ?? 0;
    if (count >= this.#most) return false;
    this.#counts.set(name, count + 1);
    return true;
  }

  release(name: string): void {
    const count = this.#counts.get(name) ?? 0;
    if (count > 1) this.#counts.set(name, count - 1);
    else this.#counts.delete(name);
    // If it was not full, nothing waits for room.
    if (count < this.#most || this.#called.has(name)) return;
    this.#called.add(name);
    queueMicrotask(() => {
      this.#called.delete(name);
      this.#hasRoom(name);
    });
  }
}
