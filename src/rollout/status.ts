/** What was decided of a rollout comes in; what is said of it in status by now goes out, and when to look again. Events tell the rest. */
import { isDeepStrictEqual } from "node:util";
import type { SecretBinding } from "../api/binding.ts";
import type { RolloutEvent, RolloutStatus } from "../api/rollout.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { Parts } from "../parts.ts";
import type { Decided } from "./decide/engine.ts";
import { bindingEvent } from "./event-messages.ts";

/** Tells of what has happened. */
export function tell({ events, rollouts }: Parts, binding: SecretBinding, happened: readonly RolloutEvent[]): void {
  for (const each of happened) {
    const event = bindingEvent(each);
    if (event !== undefined) events.record(binding, event);
    if (each.what === "failed") rollouts.failed();
    if (each.what === "ended") rollouts.ended(each.seconds);
  }
}

/** What came of it. */
export interface Rolled {
  /** As it is to stand in status; that of before, while what has changed can wait to be said. */
  status: RolloutStatus | undefined;
  /** How many there are; undefined while that is not known. */
  workloads: number | undefined;
  problem?: Problem;
  againMs?: number;
  /** Nothing is under way, and nothing waits to be said. */
  isDone: boolean;
}

/** What is remembered for that. */
export interface Saying {
  /** What was decided and is not in status yet, and since when that is the case. */
  unsaid?: { status: RolloutStatus; since: number };
  /** What a rollout that is under way waits for. */
  waits?: string;
}

/**
 * How long what can be told from the cluster may wait to be told in status, by how many wait for that: the workloads of
 * others go first, and what has ended by then was not worth a write.
 */
const saidWithinMs = (waiting: number) => Math.min(Math.max(1_000, 20 * waiting), 10_000);
/** Node takes no longer ones. */
const LONGEST_WAIT_MS = 24 * 3_600_000;

/**
 * What is only on its way, or stale and about to be decided anew, is told a little later, when more may be known of it.
 * `waiting` is how many others do so.
 */
export function rolled(
  saying: Saying,
  stored: RolloutStatus | undefined,
  { status, againMs }: Pick<Decided, "status" | "againMs">,
  workloads: number,
  problem: Problem | undefined,
  waiting: () => number,
  isStale: boolean,
): Rolled {
  const { pending } = status;
  if (pending === undefined) delete saying.waits;
  else saying.waits = pending.reason;
  const later = againMs === undefined ? {} : { againMs: Math.min(againMs, LONGEST_WAIT_MS) };
  const rest = { workloads, ...(problem !== undefined && { problem }) };
  const since = saying.unsaid?.since ?? performance.now();
  delete saying.unsaid;
  const isUnderWay = pending?.workloads?.every(({ state }) => state === "Rolling" || state === "Done") ?? false;
  const isNoNews = pending !== undefined && pending.reason === stored?.pending?.reason;
  const mayWait = (isUnderWay || isNoNews || isStale) && problem === undefined && !isDeepStrictEqual(status, stored);
  const waitMs = mayWait ? since + saidWithinMs(waiting()) - performance.now() : 0;
  if (waitMs > 0) {
    saying.unsaid = { status, since };
    return { ...rest, status: stored, againMs: Math.min(waitMs, againMs ?? waitMs), isDone: false };
  }
  return { ...rest, status, ...later, isDone: pending === undefined && problem === undefined };
}
