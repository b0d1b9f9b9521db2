/** Plans each entry of spec.targets once for all its objects, taking turns on the CPU with other namespaces. */
import type { Target } from "../api/binding.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { checkFields } from "../transform/plan.ts";
import type { Plan } from "../transform/plan-types.ts";
import type { CpuScheduler } from "../workqueue/cpu-scheduler.ts";

type Recipes = ReturnType<typeof checkFields>;

/** Of one reconcile: its sources stay as they were read. */
export class PlanCache {
  readonly #turns: CpuScheduler;
  readonly #namespace: string;
  readonly #checked = new Map<Target, Recipes | Problem>();
  readonly #plans = new Map<Target, Plan | Problem>();
  readonly #fits = new Map<Plan, true | Problem>();

  constructor(turns: CpuScheduler, namespace: string) {
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
    await this.#once(this.#fits, plan, (): true => {
      check();
      return true;
    });
  }

  /** Plans hold values: they are let go with the targets that they were made for. */
  forget(): void {
    this.#plans.clear();
    this.#fits.clear();
  }

  /** What differs from object to object. */
  alone<T>(work: () => T): Promise<T> {
    return this.#turns.run(this.#namespace, work);
  }

  async #once<K, T>(known: Map<K, T | Problem>, key: K, work: () => T): Promise<T> {
    // Many objects of an entry may wait for the same.
    const find = () => {
      const found = known.get(key) ?? attemptSync(work);
      known.set(key, found);
      return found;
    };
    const result = known.get(key) ?? (await this.#turns.run(this.#namespace, find));
    if (result instanceof Problem) throw result;
    return result;
  }
}
