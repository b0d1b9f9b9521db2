/** What was decided of a rollout comes in; what is said of it in status by now goes out, and when to look again. Events tell the rest. */
import { isDeepStrictEqual } from "node:util";
import type { SecretBinding } from "../api/binding.ts";
import type { RolloutStatus } from "../api/rollout.ts";
import type { Verdict } from "../api/verdict.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { storedReason } from "../apimachinery/reasons.ts";
import type { RolloutDecision } from "./decide/engine.ts";
import type { RestartDependencies } from "./dependencies.ts";
import { bindingEvent } from "./event-messages.ts";
import type { RolloutMemory } from "./memory.ts";
import { type RecreatedJob, SHOWN_WITHIN_MS } from "./restart/recreated-jobs.ts";
import type { RolloutEvent } from "./types.ts";

/** Tells of what has happened. */
export function recordRolloutEvents(
  { events, rollouts }: Pick<RestartDependencies, "events" | "rollouts">,
  binding: SecretBinding,
  happened: readonly RolloutEvent[],
): void {
  for (const each of happened) {
    const event = bindingEvent(each);
    if (event !== undefined) events.record(binding, event);
    if (each.what === "failed") rollouts.failed();
    if (each.what === "ended") rollouts.ended(each.seconds);
  }
}

/** What came of it. */
export interface RolloutResult {
  /** As it is to stand in status; that of before, while what has changed can wait to be said. */
  status: RolloutStatus | undefined;
  /** How many there are; undefined while that is not known. */
  workloads: number | undefined;
  problem?: Problem;
  requeueAfterMs?: number;
  /** Nothing is under way, and nothing waits to be said. */
  isDone: boolean;
  /** Where every workload has rolled out: the versions of the sources for which it has, by name. */
  rolledOutFor?: ReadonlyMap<string, string>;
}

/** `problem` is what keeps workloads from being found or restarted. */
function verdictOf(status: RolloutStatus | undefined, problem: Problem | undefined, workloads: number): Verdict {
  if (problem !== undefined) return { ready: "False", reason: problem.reason, message: problem.message };
  const pending = status?.pending;
  if (pending !== undefined) return { ready: "False", reason: storedReason(pending.reason), message: pending.message };
  if (workloads === 0) return { ready: "True", reason: "RolledOut", message: "no workload depends on the values" };
  const who =
    workloads === 1
      ? "the workload that depends on the values has"
      : `all ${workloads} workloads that depend on the values have`;
  return { ready: "True", reason: "RolledOut", message: `${who} them` };
}

/** No verdict while it is not known which workloads there are: what was said before stays. */
export const rolloutOf = ({ status, problem, workloads }: Omit<RolloutResult, "isDone">) => ({
  status,
  verdict: workloads === undefined ? undefined : verdictOf(status, problem, workloads),
});

/**
 * How long what can be told from the cluster may wait to be told in status, by how many wait for that: the workloads of
 * others go first, and what has ended by then was not worth a write.
 */
const saidWithinMs = (waiting: number) => Math.min(Math.max(1_000, 20 * waiting), 10_000);
/** Node takes no longer ones. */
const MAX_WAIT_MS = 24 * 3_600_000;

/**
 * What is only on its way, or stale and about to be decided anew, is told a little later, when more may be known of it.
 * `waiting` is how many others do so.
 */
export function rolloutResult(
  memory: RolloutMemory,
  stored: RolloutStatus | undefined,
  { status, requeueAfterMs }: Pick<RolloutDecision, "status" | "requeueAfterMs">,
  workloads: number,
  problem: Problem | undefined,
  waiting: () => number,
  isStale: boolean,
): RolloutResult {
  const { pending } = status;
  memory.waits = pending?.reason;
  const later = requeueAfterMs === undefined ? {} : { requeueAfterMs: Math.min(requeueAfterMs, MAX_WAIT_MS) };
  const rest = { workloads, ...(problem !== undefined && { problem }) };
  const since = memory.unsaid?.since ?? performance.now();
  memory.unsaid = undefined;
  const isUnderWay = pending?.workloads?.every(({ state }) => state === "Rolling" || state === "Done") ?? false;
  const isNoNews = pending !== undefined && pending.reason === stored?.pending?.reason;
  const mayWait = (isUnderWay || isNoNews || isStale) && problem === undefined && !isDeepStrictEqual(status, stored);
  const waitMs = mayWait ? since + saidWithinMs(waiting()) - performance.now() : 0;
  if (waitMs > 0) {
    memory.unsaid = { status, since };
    return { ...rest, status: stored, requeueAfterMs: Math.min(waitMs, requeueAfterMs ?? waitMs), isDone: false };
  }
  return { ...rest, status, ...later, isDone: pending === undefined && problem === undefined };
}

/** No watch shows a recreated Job that came and went, so the controller looks again when it gives it up. */
export function untilShown(result: RolloutResult, made: ReadonlyMap<string, RecreatedJob>): RolloutResult {
  const now = performance.now();
  const due = [...made.values()].map(({ at }) => at + SHOWN_WITHIN_MS - now + 1).filter((ms) => ms > 0);
  if (result.isDone || due.length === 0) return result;
  return { ...result, requeueAfterMs: Math.min(result.requeueAfterMs ?? Number.POSITIVE_INFINITY, ...due) };
}
