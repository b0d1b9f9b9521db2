/**
 * A value that came out of a Secret, or was made from one. It goes in once and comes out only by `reveal()`; every way
 * in which JavaScript prints a thing (string conversion, JSON, inspect, errors, console) shows a mask instead.
 */
import { inspect } from "node:util";

const MASK = "[secret]";

export class SecretValue<T> {
  readonly #value: T;
  constructor(value: T) {
    this.#value = value;
  }
  /** The value itself. Call it where the value is written or compared, and nowhere else. */
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
