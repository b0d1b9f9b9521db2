/** Keeps objects in memory for a moment, up to a total size. */
import type { JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { sizeOf } from "../transform/budget.ts";

/** The most characters of all objects together. */
const MAX_SIZE = 4 * 1024 ** 2;
/** The memory of a value besides its characters. */
const PER_VALUE = 16;

interface Kept<T> {
  value: T;
  size: number;
  timer: NodeJS.Timeout;
}

/** `T` holds the object, sealed if it is secret. */
export class KeptObjects<T> {
  readonly #maxEach: number;
  /** The oldest first. */
  readonly #kept = new Map<string, Kept<T>>();
  #size = 0;

  /** `maxEach` is the most characters of one object. A larger one is not kept. */
  constructor(maxEach: number) {
    this.#maxEach = maxEach;
  }

  get count(): number {
    return this.#kept.size;
  }

  get(key: string): T | undefined {
    return this.#kept.get(key)?.value;
  }

  /** Replaces what is kept for the key, for so many milliseconds. The oldest objects are dropped for others. */
  set(key: string, value: T, object: KubeObject, ms: number): void {
    this.delete(key);
    const { characters, elements } = sizeOf(object as unknown as JsonValue);
    const size = characters + elements * PER_VALUE;
    if (size > this.#maxEach) return;
    const timer = setTimeout(() => this.delete(key), ms).unref();
    this.#kept.set(key, { value, size, timer });
    this.#size += size;
    for (const oldest of this.#kept.keys()) {
      if (this.#size <= MAX_SIZE) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    clearTimeout(kept.timer);
    this.#size -= kept.size;
    this.#kept.delete(key);
  }
}
