/**
 * The entries of a binding's targets come in; what their fields make of the sources goes out, worked out once for all the
 * objects of an entry, and in turns with those of other namespaces.
 */
import type { Target } from "../api/binding.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { checkFields } from "../transform/plan.ts";
import type { Plan } from "../transform/plan-types.ts";
import type { Turns } from "../workqueue/cpu-scheduler.ts";

type Recipes = ReturnType<typeof checkFields>;

/** Of one reconcile: its sources stay as they were read. */
export class Planning {
  readonly #turns: Turns;
  readonly #namespace: string;
  readonly #checked = new Map<Target, Recipes | Problem>();
  readonly #plans = new Map<Target, Plan | Problem>();
  readonly #fits = new WeakMap<Plan, true | Problem>();

  constructor(turns: Turns, namespace: string) {
    this.#turns = turns;
    this.#namespace = namespace;
  }

  /** Finds what is wrong with an entry by itself. Throws what `check` throws. */
  check(target: Target, check: () => Recipes): Promise<Recipes> {
    return this.#once(this.#checked, target, check);
  }

  /** Throws what `plan` throws. */
  plan(target: Target, plan: () => Plan): Promise<Plan> {
    return this.#once(this.#plans, target, plan);
  }

  /** Finds what keeps a plan from being written. Throws what `check` throws. */
  async fit(plan: Plan, check: () => void): Promise<void> {
    await this.#once(this.#fits, plan, () => done(check));
  }

  /** Plans hold values: they are let go with the targets that they were made for. */
  forget(): void {
    this.#plans.clear();
  }

  /** What differs from object to object. */
  alone<T>(work: () => T): Promise<T> {
    return this.#turns.take(this.#namespace, work);
  }

  async #once<K, T>(known: Known<K, T | Problem>, key: K, work: () => T): Promise<T> {
    // Many objects of an entry may wait for the same.
    const find = () => {
      const found = known.get(key) ?? attempted(work);
      known.set(key, found);
      return found;
    };
    const result = known.get(key) ?? (await this.#turns.take(this.#namespace, find));
    if (result instanceof Problem) throw result;
    return result;
  }
}

interface Known<K, T> {
  get(key: K): T | undefined;
  set(key: K, value: T): unknown;
}

function done(work: () => void): true {
  work();
  return true;
}

function attempted<T>(work: () => T): T | Problem {
  try {
    return work();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}
