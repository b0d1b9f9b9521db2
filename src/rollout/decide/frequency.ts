/**
 * Decides whether a workload restarts too often because values keep changing, by the times of its last restarts. It then restarts when the
 * values have settled, or when a user asks for it. Pure.
 */
import type { RestartLimit } from "../../api/installation.ts";
import type { RolloutStatus } from "../../api/rollout.ts";
import { describeObject } from "../../apimachinery/objects.ts";
import type { Dependent } from "../types.ts";

export interface FrequencyInput {
  now: number;
  /** The name and namespace of the binding, for the command in a message. */
  binding: { name: string; namespace: string };
  /** Undefined: restarts are not limited. */
  restartLimit: RestartLimit | undefined;
  /** The times of the last restarts of a workload for changing values, by any binding; in ms, ascending. */
  restartTimesOf(dependent: Dependent): readonly number[];
}

/**
 * What the status records. `unsettledTime`: when a value last changed, while it keeps changing since restarts were stopped.
 * `restartsCountedFrom`: when a user asked to continue, which earlier restarts do not count against.
 */
type StopRecord = Pick<RolloutStatus, "unsettledTime" | "restartsCountedFrom">;

/** How many changed values a message names. */
const MAX_NAMED = 3;

/** A time of another leader may be ahead by so much. Later ones were not written by Inlay. */
const SKEW_MS = 60_000;

/** The record after this decision. `hasChanged`: some value has changed since the last one. */
export function stopRecord(
  { now, restartLimit }: Pick<FrequencyInput, "now" | "restartLimit">,
  { unsettledTime, restartsCountedFrom }: StopRecord,
  hasChanged: boolean,
  isAgain: boolean,
): StopRecord {
  if (restartLimit === undefined) return {};
  const time = new Date(now).toISOString();
  if (isAgain && unsettledTime !== undefined) return { restartsCountedFrom: time };
  const isRecent = (each: string | undefined): each is string =>
    each !== undefined && Date.parse(each) + restartLimit.windowMs > now;
  return {
    ...(isRecent(unsettledTime) && { unsettledTime: hasChanged ? time : unsettledTime }),
    ...(isRecent(restartsCountedFrom) && { restartsCountedFrom }),
  };
}

/** Until when a workload does not restart, in ms. `changed`: when a value last changed. Undefined if it may restart. */
export function stoppedUntil(
  { now, restartLimit, restartTimesOf }: FrequencyInput,
  { unsettledTime, restartsCountedFrom }: StopRecord,
  changed: string,
  dependent: Dependent,
): number | undefined {
  if (restartLimit === undefined) return undefined;
  const { max, windowMs } = restartLimit;
  const from = restartsCountedFrom === undefined ? Number.NEGATIVE_INFINITY : Date.parse(restartsCountedFrom);
  const last = restartTimesOf(dependent)
    .filter((each) => each > from && each <= now + SKEW_MS)
    .slice(-max);
  const [first = 0] = last;
  if (last.length < max || (last.at(-1) ?? 0) - first >= windowMs) return undefined;
  // While values keep changing, the end of the window permits nothing.
  if (first + windowMs <= now && unsettledTime === undefined) return undefined;
  const until = Math.max(first, Date.parse(unsettledTime ?? changed)) + windowMs;
  return until > now ? until : undefined;
}

/** For the workload in the status. */
export const tooFrequent = ({ max, window }: RestartLimit): string =>
  `it restarted ${max} times within ${window}, because values keep changing`;

/** For the condition and the event. `changed`: the ids of the digests. */
export function stoppedMessage(
  { ref: { resource, namespace, name } }: Dependent,
  limit: RestartLimit,
  { binding }: Pick<FrequencyInput, "binding">,
  changed: readonly string[],
  until: number,
): string {
  const more = changed.length > MAX_NAMED ? ` and ${changed.length - MAX_NAMED} more` : "";
  const values = `${changed.slice(0, MAX_NAMED).join(", ")}${more}`;
  const why = `${describeObject(resource.kind, namespace, name)}: ${tooFrequent(limit)}: ${values}`;
  const when = `Inlay restarts it when they have stayed the same for ${limit.window}, at ${new Date(until).toISOString()} at the earliest`;
  return `${why}. Find out what changes them. ${when}; restart it at once with: inlay sync ${binding.name} -n ${binding.namespace}`;
}

/** How many ms remain until values that kept changing have settled. */
export function untilSettled(
  { now, restartLimit }: Pick<FrequencyInput, "now" | "restartLimit">,
  { unsettledTime }: StopRecord,
): number | undefined {
  if (restartLimit === undefined || unsettledTime === undefined) return undefined;
  return Math.max(0, Date.parse(unsettledTime) + restartLimit.windowMs - now);
}
