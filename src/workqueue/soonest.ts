/** Combines several results of one key into the one that decides its retry. Pure. */
import type { WorkResult } from "./work-queue.ts";

/** Backoff if any result asks for it, with the lowest limit, otherwise the shortest time. */
export function soonest(results: readonly WorkResult[]): WorkResult {
  const waits = results.flatMap((each) => (each.retry === "after" ? [each] : []));
  const backoffs = results.flatMap((each) => (each.retry === "backoff" ? [each] : []));
  const [backoff] = backoffs.toSorted((a, b) => (a.mostMs ?? 0) - (b.mostMs ?? 0));
  if (backoff?.mostMs !== undefined)
    return { ...backoff, mostMs: Math.min(backoff.mostMs, ...waits.map(({ ms }) => ms)) };
  if (backoff !== undefined) return backoff;
  const [first] = waits.toSorted((a, b) => a.ms - b.ms);
  return first ?? { retry: "never" };
}
