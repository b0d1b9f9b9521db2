/** What came of a binding's targets comes in; when to look at it again goes out. Pure. */
import type { SecretBinding } from "../../api/binding.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { WorkResult } from "../../workqueue/work-queue.ts";

/** When to look again at what only a change of rules heals: schemas, webhooks, policies. */
const LATE_MS = 30_000;

/** What another try heals takes turns with all else of the namespace: nobody makes work for others by a thousand mistakes. */
export function whenAgain(
  { metadata: { namespace = "" } }: SecretBinding,
  all: readonly { problem?: Problem; againMs?: number }[],
): WorkResult {
  const soon = all.flatMap(({ problem }) => (problem?.healing === "soon" ? problem : []));
  // When the API server is back, everybody is to be.
  if (soon.some(({ reason }) => reason === "Unavailable")) return { retry: "backoff" };
  if (soon.length > 0) return { retry: "backoff", among: namespace };
  const waits = all.flatMap(({ againMs }) => againMs ?? []);
  const isLate = all.some(({ problem }) => problem?.healing === "late");
  if (isLate && waits.length === 0) return { retry: "after", ms: LATE_MS, among: namespace };
  const ms = Math.min(...waits, ...(isLate ? [LATE_MS] : []));
  return waits.length > 0 ? { retry: "after", ms } : { retry: "never" };
}
