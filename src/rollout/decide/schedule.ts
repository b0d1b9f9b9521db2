/** Decides which workloads of a rollout restart now, and why the others wait, also because they restart too often. Pure. */

import type { RestartLimit } from "../../api/installation.ts";
import type { Digests, RolloutStatus } from "../../api/rollout.ts";
import { firstOf } from "../../apimachinery/name-list.ts";
import { describeRef } from "../../apimachinery/objects.ts";
import type { ConditionReason } from "../../apimachinery/reasons.ts";
import type { Dependent, NamespaceProblem, RolloutBlock, Step } from "../types.ts";
import { type AffectedWorkload as Entry, type Rollout, stampFor } from "./affected.ts";
import { withoutRestart } from "./reverts.ts";

interface FrequencyInput {
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
const MAX_NAMED_STOPPED = 3;

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

/**
 * Until when a workload does not restart, in ms. `changed`: when a value last changed. Undefined if it may restart.
 * After too many restarts, it restarts when its values have settled, or when a user asks for it.
 */
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
const tooFrequent = ({ max, window }: RestartLimit): string =>
  `it restarted ${max} times within ${window}, because values keep changing`;

/** For the condition and the event. `changed`: the ids of the digests. */
function stoppedMessage(
  { ref }: Dependent,
  limit: RestartLimit,
  { binding }: Pick<FrequencyInput, "binding">,
  changed: readonly string[],
  until: number,
): string {
  const values = firstOf(changed, MAX_NAMED_STOPPED);
  const why = `${describeRef(ref)}: ${tooFrequent(limit)}: ${values}`;
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

/** How many failed workloads a message names. Each has its own message in the status. */
const MAX_NAMED = 3;

/** What decides whether restarts may begin. */
export interface ScheduleInput extends FrequencyInput {
  steps: readonly Step[];
  /** The namespaces whose workloads can't be known. */
  unknown: readonly NamespaceProblem[];
  maxConcurrent: number;
  /** Why this workload may not be restarted at all. */
  refusal(dependent: Dependent): string | undefined;
  /** The API server refused its last restart: it goes last, so that it takes no slot from other workloads. */
  wasRefused(dependent: Dependent): boolean;
  /** Takes a slot of the installation for it. Returns whether there is one. */
  take(dependent: Dependent): boolean;
}

/** A restart to be written. */
export interface PlannedRestart {
  dependent: Dependent;
  stamp: string;
  /** The ids of the digests that it is for: changed values, or values that changed back after a restart for them. */
  causes: string[];
}

/** A workload that does not restart, because it restarted too often. */
interface StoppedWorkload {
  dependent: Dependent;
  message: string;
  /** When it may restart, in ms. */
  until: number;
}

/** Plans the restarts of the first step that is not complete, and updates the entries. */
export function schedule(
  turn: ScheduleInput,
  entries: Entry[],
  rollout: Rollout,
  changed: Digests,
  formerlyChanged: Digests,
  stoppedUntil: (dependent: Dependent) => number | undefined,
): { stamps: PlannedRestart[]; block: RolloutBlock; stopped: StoppedWorkload[] } {
  for (const [position, step] of turn.steps.entries()) {
    const group = entries.filter(({ dependent }) => dependent.step === position);
    const open = group.filter(({ entry }) => entry.state !== "Done");
    const failed = open.filter(({ entry }) => entry.state === "Failed");
    const unknown = turn.unknown.filter((each) => each.step === position);
    const isThrough = open.length === 0 || (step.onFailure === "Continue" && failed.length === open.length);
    if (isThrough && unknown.length === 0) continue;
    const label = step.name === undefined ? "" : `step ${step.name}: `;
    if (failed.length > 0 && step.onFailure === "Halt") {
      const message = `${label}${failedText(failed)}; no other workload restarts until it has rolled out`;
      return { stamps: [], block: { reason: reasonOf(failed), message }, stopped: [] };
    }
    const plan = (dependent: Dependent): PlannedRestart => ({
      dependent,
      stamp: stampFor(rollout, dependent, changed),
      causes: causesOf(dependent, changed, formerlyChanged),
    });
    const { stamps, waits, stopped } = startGroup(turn, group, entries, plan, stoppedUntil);
    return { stamps, block: groupBlock(label, group, waits ?? waitingFor(unknown)), stopped };
  }
  const failed = entries.filter(({ entry }) => entry.state === "Failed");
  return { stamps: [], block: { reason: reasonOf(failed), message: failedText(failed) }, stopped: [] };
}

/** What a step waits for if not all of its workloads can be known. */
function waitingFor([first, ...others]: readonly NamespaceProblem[]): RolloutBlock | undefined {
  if (first === undefined) return undefined;
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  const message = `the workloads of namespace ${first.namespace}${more} are not known: ${first.problem.brief}`;
  return { reason: first.problem.reason, message };
}

/** Plans restarts while there are slots. `waits` is why the other workloads wait, if any do. */
function startGroup(
  turn: ScheduleInput,
  group: Entry[],
  all: Entry[],
  plan: (dependent: Dependent) => PlannedRestart,
  stoppedUntil: (dependent: Dependent) => number | undefined,
): { stamps: PlannedRestart[]; waits?: RolloutBlock; stopped: StoppedWorkload[] } {
  const stamps: PlannedRestart[] = [];
  const stopped: StoppedWorkload[] = [];
  const waiting = (reason: ConditionReason, message: string) => ({ stamps, waits: { reason, message }, stopped });
  let slots = turn.maxConcurrent - all.filter(isRolling).length;
  let refused: string | undefined;
  /** The namespaces without a free slot. */
  const full = new Set<string | undefined>();
  // Workloads that roll out already have their slots.
  const rank = (each: Entry) => (isRolling(each) ? 0 : turn.wasRefused(each.dependent) ? 2 : 1);
  for (const each of group.toSorted((a, b) => rank(a) - rank(b))) {
    if (!each.isDue) continue;
    const hasSlot = isRolling(each);
    const why = each.lacks ?? turn.refusal(each.dependent);
    if (why !== undefined) {
      refused ??= why;
      each.entry = { ...each.entry, message: why };
      continue;
    }
    const until = stoppedUntil(each.dependent);
    if (until !== undefined && turn.restartLimit !== undefined) {
      const { stamp, causes } = plan(each.dependent);
      // A restart that is repeated after a revert is for the same values. One that was only tried counts as any other.
      if (each.entry.reverts === undefined || each.entry.stamp !== stamp) {
        each.entry = { ...each.entry, message: tooFrequent(turn.restartLimit) };
        const message = stoppedMessage(each.dependent, turn.restartLimit, turn, causes, until);
        stopped.push({ dependent: each.dependent, message, until });
        continue;
      }
    }
    if (slots <= 0 && !hasSlot)
      return waiting("MaxConcurrent", "spec.rollout.maxConcurrent permits no more workloads to roll out at once");
    const { namespace } = each.dependent.ref;
    if (full.has(namespace) || !turn.take(each.dependent)) {
      full.add(namespace);
      continue;
    }
    const planned = plan(each.dependent);
    const { message: _, ...rest } = each.entry.stamp === planned.stamp ? each.entry : withoutRestart(each.entry);
    each.entry = { ...rest, state: "Rolling", stamp: planned.stamp, restartTime: timeOf(turn.now) };
    each.isDue = false;
    stamps.push(planned);
    if (!hasSlot) slots--;
  }
  if (full.size > 0) return waiting("MaxConcurrent", "the installation permits no more workloads to roll out at once");
  const [first, ...others] = stopped;
  if (first !== undefined) {
    const more = others.length === 0 ? "" : ` (and ${others.length} more, see status.rollout.pending.workloads)`;
    const requeueAfterMs = Math.min(...stopped.map(({ until }) => until)) - turn.now;
    const waits: RolloutBlock = { reason: "RestartsTooFrequent", message: `${first.message}${more}`, requeueAfterMs };
    return { stamps, waits, stopped };
  }
  return refused === undefined ? { stamps, stopped } : waiting("RestartBlocked", refused);
}

export function causesOf({ uses }: Dependent, changed: Digests, formerlyChanged: Digests): string[] {
  const all = [...uses].sort();
  const causes = [changed, formerlyChanged].map((digests) => all.filter((id) => digests[id] !== undefined));
  return causes.find(({ length }) => length > 0) ?? all;
}

function groupBlock(label: string, group: Entry[], waits: RolloutBlock | undefined): RolloutBlock {
  const counts = (["Rolling", "Waiting"] as const).flatMap((state) => {
    const { length } = group.filter(({ entry }) => entry.state === state);
    return length === 0 ? [] : `${length} of ${group.length} ${state === "Rolling" ? "rolling out" : "waiting"}`;
  });
  const message = `${label}${[counts.join(", "), waits?.message].filter(Boolean).join(": ")}`;
  const { requeueAfterMs } = waits ?? {};
  return { reason: waits?.reason ?? "RollingOut", message, ...(requeueAfterMs !== undefined && { requeueAfterMs }) };
}

/** The reason of a workload that did not roll out. */
export const failureOf = (isReverted = false) => (isReverted ? "RestartReverted" : "RolloutFailed");

/** Of several: a failed rollout needs a user in any case. */
const reasonOf = (failed: Entry[]) => failureOf(failed.every(({ isReverted }) => isReverted));

function failedText(failed: Entry[]): string {
  const named = failed
    .slice(0, MAX_NAMED)
    .map(({ entry: { kind, namespace, name, message = "" } }) => `${kind} ${namespace}/${name}: ${message}`);
  const more = failed.length - named.length;
  return `${named.join("; ")}${more > 0 ? `; and ${more} more, see status.rollout.pending.workloads` : ""}`;
}

/** The maximum time for which a workload holds a slot, whatever timeout its binding sets. */
export const MAX_SLOT_MS = 3_600_000;

/** A workload whose pods wait for a user takes no slot. */
export const isRolling = ({ entry, dependent: { workload } }: Entry) =>
  entry.state === "Rolling" && !workload.paused && !workload.progress.isHeld;

/** In milliseconds, so that two changes within a second differ. */
export const timeOf = (ms: number) => new Date(ms).toISOString();
