/**
 * Knows when workloads last restarted for changing values, by all bindings. Their annotations have these times, which another leader reads.
 * Jobs lose their annotation, and operators may remove it, so this process remembers its own restarts as well.
 */
import type { RestartLimit } from "../../api/installation.ts";
import { BoundedMap } from "../../apimachinery/maps.ts";
import { idOf } from "../../apimachinery/objects.ts";
import type { Dependent } from "../types.ts";

/** How many workloads are remembered. The oldest are forgotten. */
const MAX_SIZE = 20_000;
const NONE: readonly never[] = [];

type Restarted = Pick<Dependent, "ref" | "workload">;

export class RecentRestarts {
  /** By workload. */
  readonly #own = new BoundedMap<string, readonly number[]>(MAX_SIZE);

  /** In ms, ascending. */
  timesOf({ ref, workload: { restarts = NONE } }: Restarted): readonly number[] {
    const own = this.#own.get(idOf(ref));
    if (own === undefined) return restarts;
    return [...new Set([...restarts, ...own])].sort((a, b) => a - b);
  }

  /** The times after a restart at `now`, without those that do not matter any more. */
  after(dependent: Restarted, now: number, { max, windowMs }: RestartLimit): readonly number[] {
    const recent = this.timesOf(dependent).filter((each) => each < now && each + windowMs > now);
    return [...recent, now].slice(-max);
  }

  /** The restart was written. */
  remember({ ref }: Restarted, times: readonly number[]): void {
    this.#own.set(idOf(ref), times);
  }
}
