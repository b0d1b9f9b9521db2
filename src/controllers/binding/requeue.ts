/** Decides when to reconcile an object again: from the results of a binding's targets, and from a new status. Pure. */
import type { Condition } from "../../api/binding.ts";
import { untilStalled } from "../../api/progress.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { WorkResult } from "../../workqueue/work-queue.ts";

/** The backoff for problems whose end no watch shows, such as a missing permission. */
export const BACKOFF_MS = { first: 500, most: 5_000 };
/** The interval of retries for problems that only a change of rules can fix: schemas, webhooks, policies. */
const SLOW_RETRY_MS = 30_000;

/** Retries share a rate limit per namespace, so that a thousand mistakes of one tenant do not delay others. */
export function requeueResult(
  namespace: string | undefined,
  all: readonly { problem?: Problem; requeueAfterMs?: number }[],
): WorkResult {
  const rateLimitGroup = namespace ?? "";
  const withBackoff = all.flatMap(({ problem }) => (problem?.retryPolicy === "Backoff" ? problem : []));
  // When the API server is available again, all bindings retry without a shared limit.
  if (withBackoff.some(({ reason }) => reason === "Unavailable")) return { retry: "backoff" };
  if (withBackoff.length > 0) return { retry: "backoff", rateLimitGroup };
  const waits = all.flatMap(({ requeueAfterMs }) => requeueAfterMs ?? []);
  if (all.some(({ problem }) => problem?.retryPolicy === "Slowing"))
    return { retry: "backoff", mostMs: Math.min(SLOW_RETRY_MS, ...waits), rateLimitGroup };
  const isSlow = all.some(({ problem }) => problem?.retryPolicy === "Slow");
  if (isSlow && waits.length === 0) return { retry: "after", ms: SLOW_RETRY_MS, rateLimitGroup };
  const ms = Math.min(...waits, ...(isSlow ? [SLOW_RETRY_MS] : []));
  return waits.length > 0 ? { retry: "after", ms } : { retry: "never" };
}

/**
 * Reconciles an object with a new status also when it becomes Stalled, if `result` does not come before. A backoff does: its pauses
 * are shorter.
 */
export function orWhenStalled(
  result: WorkResult,
  status: { conditions?: Condition[] } | undefined,
  now: Date,
): WorkResult {
  const ms = untilStalled(status, now);
  if (ms === undefined || result.retry === "backoff") return result;
  if (result.retry === "after" && result.ms <= ms) return result;
  return { retry: "after", ms };
}
