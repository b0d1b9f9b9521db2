/** What rendering one template may cost: steps and sizes are charged before they are spent, a Problem goes out past the limit. */
import type { JsonValue } from "../model/kube-object.ts";
import { Problem } from "../model/problem.ts";

const MAX_STEPS = 10_000;
/** Of all that helpers take apart and put together on the way, in characters. */
const MAX_WORK = 8 * 1024 * 1024;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** What an element of a list costs beside its text. */
const PER_ELEMENT = 16;

export class Budget {
  #steps = 0;
  #work = 0;
  #output = 0;

  /** One node of the template is evaluated. */
  step(): void {
    this.#steps += 1;
    if (this.#steps > MAX_STEPS) throw new Problem("InvalidTemplate", "the template has too many parts");
  }

  /** A helper is about to read or make so many characters, as so many parts. */
  work(characters: number, elements = 0): void {
    this.#work += characters + elements * PER_ELEMENT;
    if (this.#work > MAX_WORK) {
      throw new Problem("InvalidTemplate", "the template's helpers would work on more than 8 MiB of text");
    }
  }

  /** Text is about to become part of the result. */
  output(text: string): void {
    this.#output += Buffer.byteLength(text);
    if (this.#output > MAX_OUTPUT_BYTES) {
      throw new Problem("InvalidTemplate", "the template's text would be over 1 MiB");
    }
  }
}

/** How many characters a value has, and how many parts. */
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
