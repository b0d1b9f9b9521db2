/**
 * Wraps a value from a Secret, or computed from one. Only `reveal()` returns it. Every way in which JavaScript prints
 * an object (string conversion, JSON, inspect, errors, console) prints a mask.
 */
import { inspect } from "node:util";

const MASK = "[secret]";

export class SecretValue<T> {
  readonly #value: T;
  constructor(value: T) {
    this.#value = value;
  }
  /** The value. Call this only where the value is written or compared. */
  reveal(): T {
    return this.#value;
  }
  map<U>(transform: (value: T) => U): SecretValue<U> {
    return new SecretValue(transform(this.#value));
  }
  toString(): string {
    return MASK;
  }
  toJSON(): string {
    return MASK;
  }
  get [Symbol.toStringTag](): string {
    return MASK;
  }
  [Symbol.toPrimitive](): string {
    return MASK;
  }
  [inspect.custom](): string {
    return MASK;
  }
}
