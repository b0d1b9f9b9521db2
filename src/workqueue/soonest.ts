/** Combines several results of one key into the one that decides its retry. Pure. */
import type { WorkResult } from "./work-queue.ts";

/** Backoff if any result asks for it, otherwise the shortest time. */
export function soonest(results: readonly WorkResult[]): WorkResult {
  const backoff = results.find(({ retry }) => retry === "backoff");
  if (backoff !== undefined) return backoff;
  const waits = results.flatMap((each) => (each.retry === "after" ? [each] : []));
  const [first] = waits.toSorted((a, b) => a.ms - b.ms);
  return first ?? { retry: "never" };
}
