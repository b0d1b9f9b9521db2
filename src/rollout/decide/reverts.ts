/**
 * Decides whether a workload still bears its restart, and what follows if another client reverted it before the pods had the new
 * values: the restart is repeated a few times, and reported. Pure.
 */
import type { WorkloadStatus } from "../../api/rollout.ts";
import { isBatch } from "../../workloads/group-kinds.ts";
import { isMark, isStampOfBinding } from "../../workloads/rollout-stamp.ts";
import { givenText } from "../../workloads/workload.ts";
import type { Dependent } from "../types.ts";

/** What the cluster shows of a workload without its restart. */
export interface Revert {
  /** All pods of the workload were created after the restart. */
  isReplaced: boolean;
  /** Who reverted the restart, as far as that is known. */
  by: string;
  /** What owns the workload, such as `HarborCluster main`. */
  owner?: string;
  /** The account may not list its pods, so their age is not known. */
  arePodsUnknown?: boolean;
  /** All older pods are being deleted. */
  isEnding?: boolean;
}

/**
 * How long after the last restart the next one follows, by the number of repeated ones. The first is repeated at once, because a client
 * that replaces the whole object does so once. Afterwards, another client removes each of them.
 */
const REPEATS_MS = [0, 600_000, 3_600_000];

/** No watch shows when the last older pod has ended. */
const ENDING_MS = 5_000;

/** `kubectl rollout restart` writes its time there. */
const RESTARTED_AT = "kubectl.kubernetes.io/restartedAt";

/** The text where restarts of this workload are written. */
export function textAt({ workload, stampAt, isRestartField }: Dependent): string | undefined {
  const last = stampAt.segments.at(-1);
  return isRestartField ? workload.restart : workload.marks?.[last?.kind === "key" ? last.key : ""];
}

/**
 * Whether the workload bears the recorded restart, or a later one. A text that was there before, or is of another restart of this
 * binding, came back with an earlier template.
 */
export function bears(dependent: Dependent, entry: WorkloadStatus, binding: string): boolean {
  // Strimzi removes its annotation after the restart. Pods of Jobs are always created after the change.
  if (givenText(dependent) === "true" || isBatch(dependent.ref.resource)) return true;
  const [text, { stamp = "", written = stamp, replaced, restartTime = "" }] = [textAt(dependent), entry];
  // If the binding named another annotation before, the stamp is there.
  if (text === written || dependent.workload.stamps.includes(stamp)) return true;
  if (text !== undefined && text !== replaced && isMark(text) && !isStampOfBinding(text, binding)) return true;
  const restartedAt = dependent.isRestartField ? undefined : dependent.workload.marks?.[RESTARTED_AT];
  // That time has full seconds, and pods that started earlier in the same second may have the former value.
  return restartedAt !== undefined && Date.parse(restartedAt) > Date.parse(restartTime);
}

/** The entry of a reverted restart: it is repeated if `isAgain`, or if its time has come. Otherwise it failed. */
export function reverted(
  entry: WorkloadStatus,
  { by, owner, arePodsUnknown, isEnding }: Revert,
  { stampAt }: Dependent,
  now: number,
  isAgain: boolean,
): { entry: WorkloadStatus; isDue: boolean; requeueAfterMs?: number } {
  const { message: _, restartTime, reverts: before, firstRestartTime = restartTime, ...rest } = entry;
  // A user undid the restart of a workload that had failed.
  const reverts = before ?? (entry.state === "Failed" ? REPEATS_MS.length : 0);
  const first = firstRestartTime === undefined ? {} : { firstRestartTime };
  const last = firstRestartTime === undefined ? now : Date.parse(restartTime ?? firstRestartTime);
  const next = reverts < REPEATS_MS.length ? last + (REPEATS_MS[reverts] as number) : undefined;
  if (isAgain || (next !== undefined && !(next > now)))
    return {
      entry: { ...rest, ...first, reverts: Math.max(1, reverts + (isAgain ? 0 : 1)), state: "Waiting" },
      isDue: true,
    };
  const operator = owner === undefined ? "the operator that owns its pod template" : owner;
  const pods = arePodsUnknown
    ? "its pods may be older, which the account may not see (list pods)"
    : "its pods may be older";
  const message = `its restart was reverted: ${stampAt} does not have the text of the restart; ${by}; ${pods}. Keep that text and run inlay sync, or restart it by a field of ${operator} (spec.rollout.targets with restartPath)`;
  const waits = [next === undefined ? [] : next - now, isEnding ? ENDING_MS : []].flat();
  const times = { ...(restartTime !== undefined && { restartTime }), ...first };
  return {
    entry: { ...rest, ...times, reverts, state: "Failed", message },
    isDue: false,
    ...(waits.length > 0 && { requeueAfterMs: Math.min(...waits) }),
  };
}

/** The entry of a workload that restarts for other values: nothing of its former restart counts. */
export function withoutRestart({
  written: _,
  replaced: __,
  generation: ___,
  reverts: ____,
  firstRestartTime: _____,
  ...entry
}: WorkloadStatus): WorkloadStatus {
  return entry;
}
