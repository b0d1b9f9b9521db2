/** Limits what making the values of one target may cost, so that no binding's templates or Secrets keep the others waiting. */
import type { JsonValue } from "../apimachinery/objects.ts";
import { Problem, type Reason } from "../apimachinery/problem.ts";
import { newFilterEffort } from "./key-filter.ts";

const MAX_STEPS = 10_000;
/** Of all that is taken apart and put together on the way, in characters. */
const MAX_WORK = 8 * 1024 * 1024;
/** Of one template. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** Of all values: the API server reads no longer requests. */
const MAX_VALUES = 3 * 1024 * 1024;
/** What an element of a list costs beside its text. */
const PER_ELEMENT = 64;

export class Budget {
  /** Of choosing keys by regular expressions. */
  readonly filters = newFilterEffort();
  #steps = 0;
  #work = 0;
  #output = 0;
  #values = 0;
  readonly #known = new WeakSet<object>();

  /** A template begins to be rendered. */
  begin(): void {
    this.#output = 0;
  }

  step(): void {
    this.#steps += 1;
    assertAtMost(MAX_STEPS, this.#steps, "InvalidTemplate", "the target's templates have too many parts");
  }

  /** So many characters are about to be read or made, as so many parts. */
  work(characters: number, elements = 0): void {
    this.#work += characters + elements * PER_ELEMENT;
    const message = "the target's templates and documents would take work on more than 8 MiB of text";
    assertAtMost(MAX_WORK, this.#work, "InvalidTemplate", message);
  }

  /** The same for what is done once, however many fields need it. */
  workOnce(what: object, cost: () => number): void {
    if (this.#known.has(what)) return;
    this.#known.add(what);
    this.work(cost());
  }

  /** Text is about to become part of a template's result. */
  output(text: string): void {
    this.#output += Buffer.byteLength(text);
    assertAtMost(MAX_OUTPUT_BYTES, this.#output, "InvalidTemplate", "the template's text would be over 1 MiB");
  }

  value(value: JsonValue): void {
    this.#values += typeof value === "string" ? value.length : sizeOf(value).characters;
    const message = "the values of the target are over 3 MiB together, more than the API server takes";
    assertAtMost(MAX_VALUES, this.#values, "InvalidValue", message);
  }
}

function assertAtMost(limit: number, used: number, reason: Reason, message: string): void {
  if (used > limit) throw new Problem(reason, message);
}

export function sizeOf(value: JsonValue): { characters: number; elements: number } {
  const total = { characters: 0, elements: 0 };
  const add = (each: JsonValue): void => {
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
