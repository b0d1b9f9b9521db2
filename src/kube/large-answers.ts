/**
 * Limits how many large answers of the API server are in memory at once. Namespaces take turns, so that one with many large objects does not
 * delay others. Small answers need no permit.
 */
import { RoundRobinQueue } from "../workqueue/round-robin-queue.ts";

/** The most characters of an answer without a permit. */
export const FREE_CHARACTERS = 256 * 1024;
const AT_ONCE = 4;
const AT_ONCE_PER_GROUP = 2;
/** The group of answers that concern no single namespace, such as the controller's own lists. It does not compete with the others. */
export const ALL_NAMESPACES = "";

export class LargeAnswers {
  readonly #waiting = new RoundRobinQueue<() => void>();
  /** The number of permits of each group. */
  readonly #held = new Map<string, number>();
  #count = 0;

  /** A permit of a namespace, or of ALL_NAMESPACES, that is not held yet. */
  permit(group: string): Permit {
    return new Permit(
      (signal) => this.#take(group, signal),
      () => this.#release(group),
    );
  }

  async #take(group: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const key = `${this.#count++}`;
    const onAbort = () => {
      this.#waiting.delete(group, key);
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting.set(group, key, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    this.#grant();
    await promise;
  }

  #release(group: string): void {
    const left = (this.#held.get(group) ?? 0) - 1;
    if (left > 0) this.#held.set(group, left);
    else this.#held.delete(group);
    this.#grant();
  }

  #grant(): void {
    let group = "";
    const may = (each: string) => {
      group = each;
      return this.#hasRoom(each);
    };
    for (let begin = this.#waiting.next(may); begin !== undefined; begin = this.#waiting.next(may)) {
      this.#held.set(group, (this.#held.get(group) ?? 0) + 1);
      begin();
    }
  }

  #hasRoom(group: string): boolean {
    if ((this.#held.get(group) ?? 0) >= AT_ONCE_PER_GROUP) return false;
    if (group === ALL_NAMESPACES) return true;
    let all = 0;
    for (const [each, held] of this.#held) if (each !== ALL_NAMESPACES) all += held;
    return all < AT_ONCE;
  }
}

/** Held by one answer at a time. */
export class Permit {
  readonly #take: (signal: AbortSignal) => Promise<void>;
  readonly #release: () => void;
  #state: "none" | "waiting" | "held" = "none";

  constructor(take: (signal: AbortSignal) => Promise<void>, release: () => void) {
    this.#take = take;
    this.#release = release;
  }

  get isWaiting(): boolean {
    return this.#state === "waiting";
  }

  /** Resolves when the permit is held. Rejects when `signal` aborts before that. */
  async take(signal: AbortSignal): Promise<void> {
    if (this.#state === "held") return;
    this.#state = "waiting";
    try {
      await this.#take(signal);
      this.#state = "held";
    } finally {
      if (this.isWaiting) this.#state = "none";
    }
  }

  /** Does nothing if it is not held. */
  release(): void {
    if (this.#state !== "held") return;
    this.#state = "none";
    this.#release();
  }
}
