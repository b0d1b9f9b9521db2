/**
 * Limits how many large answers of the API server are in memory at once. Namespaces take turns, so that one with many large objects does not
 * delay others. Small answers need no permit.
 */
import { Slots } from "../workqueue/slots.ts";

/** The most characters of an answer without a permit. */
export const FREE_CHARACTERS = 256 * 1024;
const AT_ONCE = 4;
const AT_ONCE_PER_GROUP = 2;
/** The group of answers that concern no single namespace, such as the controller's own lists. It does not compete with the others. */
export const ALL_NAMESPACES = "";

const hasRoom = (taken: number, total: number) => taken < AT_ONCE_PER_GROUP && total < AT_ONCE;

export class LargeAnswers {
  readonly #ofNamespaces = new Slots(hasRoom);
  readonly #ofAll = new Slots(hasRoom);
  #count = 0;

  /** A permit of a namespace, or of ALL_NAMESPACES, that is not held yet. */
  permit(group: string): Permit {
    return new Permit(group === ALL_NAMESPACES ? this.#ofAll : this.#ofNamespaces, group, `${this.#count++}`);
  }
}

/** Held by one answer at a time. */
export class Permit {
  readonly #slots: Slots;
  readonly #group: string;
  readonly #key: string;
  #state: "none" | "waiting" | "held" = "none";

  constructor(slots: Slots, group: string, key: string) {
    this.#slots = slots;
    this.#group = group;
    this.#key = key;
  }

  get isWaiting(): boolean {
    return this.#state === "waiting";
  }

  /** Resolves when the permit is held. Rejects when `signal` aborts before that. */
  async take(signal: AbortSignal): Promise<void> {
    if (this.#state === "held") return;
    signal.throwIfAborted();
    this.#state = "waiting";
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      this.release();
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#slots.take(this.#group, this.#key, () => {
      this.#state = "held";
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    await promise;
  }

  /** Does nothing if it is not held. */
  release(): void {
    this.#state = "none";
    this.#slots.release(this.#group, this.#key);
  }
}
