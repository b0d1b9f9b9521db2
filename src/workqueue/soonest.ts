/** Several results of one key come in, the one that the key is retried by goes out. Pure. */
import type { WorkResult } from "./work-queue.ts";

/** With backoff if one asks for that, else after the shortest time. */
export function soonest(results: readonly WorkResult[]): WorkResult {
  const backoff = results.find(({ retry }) => retry === "backoff");
  if (backoff !== undefined) return backoff;
  const waits = results.flatMap((each) => (each.retry === "after" ? [each] : []));
  const [first] = waits.toSorted((a, b) => a.ms - b.ms);
  return first ?? { retry: "never" };
}
