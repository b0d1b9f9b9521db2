/**
 * Caches the answers of polls, sealed and up to a total size. The group with the largest share is evicted first, so that large answers of
 * one server displace no answers of others.
 */
import { SecretValue } from "../apimachinery/secret-value.ts";

export interface PollAnswer<T = unknown> {
  /** Changes with the content. */
  readonly version: string;
  readonly content: T;
  /** The size of the content in memory, in bytes. */
  readonly size: number;
  /** When to poll again, in ms, if the answer says so, such as a lease. By default, `refreshMs`. */
  readonly refreshMs?: number;
}

interface Group {
  bytes: number;
  /** From the oldest to the newest. */
  readonly answers: Map<string, SecretValue<PollAnswer>>;
}

/** In bytes. An answer that is not cached is requested again when a binding needs it. */
const MAX_BYTES = 32 * 1024 ** 2;

export class AnswerCache {
  readonly #maxBytes: number;
  readonly #groups = new Map<string, Group>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The size of all answers. */
  get bytes(): number {
    return this.#bytes;
  }

  get(group: string, id: string): PollAnswer | undefined {
    return this.#groups.get(group)?.answers.get(id)?.reveal();
  }

  set(group: string, id: string, answer: PollAnswer): void {
    this.delete(group, id);
    const own = this.#groups.get(group) ?? { bytes: 0, answers: new Map() };
    this.#groups.set(group, own);
    own.answers.set(id, new SecretValue(answer));
    own.bytes += answer.size;
    this.#bytes += answer.size;
    while (this.#bytes > this.#maxBytes) {
      const [name, { answers }] = this.#largest();
      const [oldest] = answers.keys();
      // The last answer stays, whatever its size, because a binding waits for it.
      if (oldest === undefined || oldest === id) break;
      this.delete(name, oldest);
    }
  }

  delete(group: string, id: string): void {
    const own = this.#groups.get(group);
    const answer = own?.answers.get(id)?.reveal();
    if (own === undefined || answer === undefined) return;
    own.answers.delete(id);
    own.bytes -= answer.size;
    this.#bytes -= answer.size;
    if (own.answers.size === 0) this.#groups.delete(group);
  }

  clear(): void {
    this.#groups.clear();
    this.#bytes = 0;
  }

  #largest(): [string, Group] {
    return [...this.#groups].reduce((most, each) => (each[1].bytes > most[1].bytes ? each : most));
  }
}
