/** Computes the status and the verdict of a rollout from its decision, and when to reconcile again. Records its events. */
import { isDeepStrictEqual } from "node:util";
import type { SecretBinding } from "../api/binding.ts";
import type { RolloutStatus } from "../api/rollout.ts";
import type { Verdict } from "../api/verdict.ts";
import type { Problem } from "../apimachinery/problem.ts";
import { storedReason } from "../apimachinery/reasons.ts";
import type { RolloutDecision } from "./decide/engine.ts";
import type { RestartDependencies } from "./dependencies.ts";
import { bindingEvent } from "./events.ts";
import type { RolloutMemory } from "./memory.ts";
import { type RecreatedJob, SHOWN_WITHIN_MS } from "./restart/recreate-job.ts";
import type { RolloutEvent } from "./types.ts";

/** Records the events and metrics. */
export function recordRolloutEvents(
  { events, rollouts }: Pick<RestartDependencies, "events" | "rollouts">,
  binding: SecretBinding,
  happened: readonly RolloutEvent[],
): void {
  for (const each of happened) {
    events.record(binding, bindingEvent(each));
    if (each.what === "failed") rollouts.failed();
    if (each.what === "stopped") rollouts.limited("restarts");
    if (each.what === "ended") rollouts.ended(each.seconds);
  }
}

/** The result of a rollout in one reconcile. */
export interface RolloutResult {
  /** The status to write; the stored one while the change can wait. */
  status: RolloutStatus | undefined;
  /** How many workloads there are; undefined while that is not known. */
  workloads: number | undefined;
  problem?: Problem;
  requeueAfterMs?: number;
  /** Nothing is in progress, and no status waits to be written. */
  isDone: boolean;
  /** What users should know of the rollout, whatever its state. */
  note?: string;
  /** If every workload has rolled out: the versions of the sources for which it has, by name. */
  rolledOutFor?: ReadonlyMap<string, string>;
}

/** `problem` is why workloads can't be found or restarted. */
function verdictOf(
  status: RolloutStatus | undefined,
  problem: Problem | undefined,
  workloads: number,
  note = "",
): Verdict {
  if (problem !== undefined) return { ready: "False", reason: problem.reason, message: problem.message };
  const pending = status?.pending;
  const also = note === "" ? "" : `; ${note}`;
  if (pending !== undefined)
    return { ready: "False", reason: storedReason(pending.reason), message: `${pending.message}${also}` };
  if (workloads === 0) return { ready: "True", reason: "RolledOut", message: "no workloads match spec.rollout" };
  const who =
    workloads === 1
      ? "the workload that depends on the values has"
      : `all ${workloads} workloads that depend on the values have`;
  return { ready: "True", reason: "RolledOut", message: `${who} them${also}` };
}

/** What an unfinished rollout waits for: the reason of its condition. */
export const waitsFor = (status: RolloutStatus | undefined, problem: Problem | undefined): string | undefined =>
  status?.pending && verdictOf(status, problem, 0).reason;

/** No verdict while the workloads are not known: the former condition stays. */
export const rolloutOf = ({ status, problem, workloads, note }: Omit<RolloutResult, "isDone">) => ({
  status,
  problem,
  verdict: workloads === undefined ? undefined : verdictOf(status, problem, workloads, note),
});

/**
 * How many ms a status may wait that the cluster shows anyway, by the number of waiting ones: restarts of other workloads come
 * first, and a rollout that ends by then needs no intermediate status.
 */
const reportWithinMs = (waiting: number) => Math.min(Math.max(1_000, 20 * waiting), 10_000);
/** The longest timer here; Node has a limit. */
const MAX_WAIT_MS = 24 * 3_600_000;

/**
 * A status that only shows progress, or is stale and will be decided again, is written a little later. `waiting` is the number of
 * other such statuses.
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
  memory.waits = waitsFor(status, problem);
  const later = requeueAfterMs === undefined ? {} : { requeueAfterMs: Math.min(requeueAfterMs, MAX_WAIT_MS) };
  const rest = { workloads, ...(problem !== undefined && { problem }) };
  const since = memory.unreported?.since ?? performance.now();
  memory.unreported = undefined;
  const isUnderWay = pending?.workloads?.every(({ state }) => state === "Rolling" || state === "Done") ?? false;
  const isNoNews = pending !== undefined && pending.reason === stored?.pending?.reason;
  const mayWait = (isUnderWay || isNoNews || isStale) && problem === undefined && !isDeepStrictEqual(status, stored);
  const waitMs = mayWait ? since + reportWithinMs(waiting()) - performance.now() : 0;
  if (waitMs > 0) {
    memory.unreported = { status, since };
    return { ...rest, status: stored, requeueAfterMs: Math.min(waitMs, requeueAfterMs ?? waitMs), isDone: false };
  }
  return { ...rest, status, ...later, isDone: pending === undefined && problem === undefined };
}

/** No watch shows a recreated Job that was deleted at once, so the binding is requeued when Inlay stops waiting for the Job. */
export function untilShown(result: RolloutResult, recreated: ReadonlyMap<string, RecreatedJob>): RolloutResult {
  const now = performance.now();
  const due = [...recreated.values()].map(({ at }) => at + SHOWN_WITHIN_MS - now + 1).filter((ms) => ms > 0);
  if (result.isDone || due.length === 0) return result;
  return { ...result, requeueAfterMs: Math.min(result.requeueAfterMs ?? Number.POSITIVE_INFINITY, ...due) };
}
