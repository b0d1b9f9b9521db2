/**
 * Limits the cost of computing the values of one target, so that no binding's templates or Secrets delay other
 * bindings.
 */
import type { JsonValue } from "../apimachinery/objects.ts";
import { Problem, type Reason } from "../apimachinery/problem.ts";
import { newFilterEffort } from "./key-filter.ts";

const MAX_STEPS = 10_000;
/** For all texts that are parsed or built on the way, in characters. */
const MAX_WORK = 8 * 1024 * 1024;
/** For one template. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** For all values together: the API server accepts no longer requests. */
const MAX_VALUES = 3 * 1024 * 1024;
/** The cost of a list element beyond its text. */
const PER_ELEMENT = 64;

export class Budget {
  /** The effort for choosing keys by regular expressions. */
  readonly filters = newFilterEffort();
  #steps = 0;
  #work = 0;
  #output = 0;
  #values = 0;
  readonly #known = new WeakSet<object>();

  /** Called when the rendering of a template begins. */
  begin(): void {
    this.#output = 0;
  }

  step(): void {
    this.#steps += 1;
    assertAtMost(MAX_STEPS, this.#steps, "InvalidTemplate", "the target's templates have too many parts; shorten them");
  }

  /** Called before so many characters are read or written, in so many parts. */
  work(characters: number, elements = 0): void {
    this.#work += characters + elements * PER_ELEMENT;
    const message = "the target's templates and documents process more than 8 MiB of text; make them smaller";
    assertAtMost(MAX_WORK, this.#work, "InvalidTemplate", message);
  }

  /** Charges work that is done once for several fields. */
  workOnce(what: object, cost: () => number): void {
    if (this.#known.has(what)) return;
    this.#known.add(what);
    this.work(cost());
  }

  /** Called before text becomes part of a template's result. */
  output(text: string): void {
    this.#output += Buffer.byteLength(text);
    const message = "the template's result has more than 1 MiB; shorten it";
    assertAtMost(MAX_OUTPUT_BYTES, this.#output, "InvalidTemplate", message);
  }

  value(value: JsonValue): void {
    this.#values += typeof value === "string" ? value.length : sizeOf(value).characters;
    const message =
      "the values of the target have more than 3 MiB together, and the API server accepts no more; write fewer values";
    assertAtMost(MAX_VALUES, this.#values, "InvalidValue", message);
  }
}

function assertAtMost(limit: number, used: number, reason: Reason, message: string): void {
  if (used > limit) throw new Problem(reason, message);
}

export function sizeOf(value: unknown): { characters: number; elements: number } {
  const total = { characters: 0, elements: 0 };
  const add = (each: unknown): void => {
    total.elements += 1;
    if (typeof each === "string") total.characters += each.length;
    else if (Array.isArray(each)) each.forEach(add);
    else if (typeof each === "object" && each !== null) {
      for (const [key, child] of Object.entries(each)) {
        total.characters += key.length;
        add(child);
      }
    }
  };
  add(value);
  return total;
}
