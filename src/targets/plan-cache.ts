/** Plans each entry of spec.targets once for all its objects, and shares the CPU fairly between namespaces. */
import type { Target } from "../api/binding.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { Plan, ReadableCopies } from "../transform/plan-types.ts";
import type { CpuScheduler } from "../workqueue/cpu-scheduler.ts";
import type { CheckedEntry } from "./evaluate.ts";

/** For one reconcile, in which the sources don't change. */
export class PlanCache {
  readonly #turns: Pick<CpuScheduler, "run">;
  readonly #namespace: string;
  readonly #checked = new Map<Target, CheckedEntry | Problem>();
  readonly #copies = new Map<Target, Map<string, ReadableCopies | "none" | Problem>>();
  readonly #plans = new Map<Target, Plan | Problem>();

  constructor(turns: Pick<CpuScheduler, "run">, namespace: string) {
    this.#turns = turns;
    this.#namespace = namespace;
  }

  /** Checks an entry without values. */
  check(target: Target, check: () => CheckedEntry): Promise<CheckedEntry> {
    return this.#once(this.#checked, target, check);
  }

  /** Finds the readable copies of an entry once for all its objects in a namespace. */
  async copies(
    target: Target,
    namespace: string | undefined,
    find: () => ReadableCopies | undefined,
  ): Promise<ReadableCopies | undefined> {
    const known = getOrInsert(this.#copies, target, () => new Map());
    const found = await this.#once(known, namespace ?? "", () => find() ?? "none");
    return found === "none" ? undefined : found;
  }

  /** Throws what `plan` throws. */
  plan(target: Target, plan: () => Plan): Promise<Plan> {
    return this.#once(this.#plans, target, plan);
  }

  /** Drops the plans, which contain values, when their targets are done. */
  forget(): void {
    this.#plans.clear();
  }

  /** Runs work that differs from object to object. */
  alone<T>(work: () => T): Promise<T> {
    return this.#turns.run(this.#namespace, work);
  }

  async #once<K, T>(known: Map<K, T | Problem>, key: K, work: () => T): Promise<T> {
    // Many objects of an entry may wait for the same result.
    const find = () => getOrInsert(known, key, () => attemptSync(work));
    const result = known.get(key) ?? (await this.#turns.run(this.#namespace, find));
    if (result instanceof Problem) throw result;
    return result;
  }
}
