/** Keeps what polls were answered, sealed and up to a size in all. What was not answered again for the longest time makes room. */
import { SecretValue } from "../apimachinery/secret-value.ts";

export interface PollAnswer<T = unknown> {
  /** Changes with the content. */
  readonly version: string;
  readonly content: T;
  /** How much memory the content takes, in bytes. */
  readonly size: number;
  /** When to ask again, in ms, where the answer says so, such as a lease. By default, `refreshMs` says it. */
  readonly refreshMs?: number;
}

/** In bytes. An answer that is not kept is asked for again when a binding needs it. */
const MAX_BYTES = 32 * 1024 ** 2;

export class AnswerCache {
  readonly #maxBytes: number;
  /** In the order in which they came. */
  readonly #answers = new Map<string, SecretValue<PollAnswer>>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get(id: string): PollAnswer | undefined {
    return this.#answers.get(id)?.reveal();
  }

  set(id: string, answer: PollAnswer): void {
    this.delete(id);
    this.#answers.set(id, new SecretValue(answer));
    this.#bytes += answer.size;
    for (const other of this.#answers.keys()) {
      // The last one stays, however large: a binding waits for it.
      if (this.#bytes <= this.#maxBytes || other === id) break;
      this.delete(other);
    }
  }

  delete(id: string): void {
    this.#bytes -= this.get(id)?.size ?? 0;
    this.#answers.delete(id);
  }

  clear(): void {
    this.#answers.clear();
    this.#bytes = 0;
  }
}
