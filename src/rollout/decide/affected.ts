/** Compares the present digests with the recorded ones, and computes which workloads must restart and with which stamp. Pure. */
import {
  type Digests,
  digestId,
  digestParts,
  type Pending,
  type RolloutStatus,
  type WorkloadStatus,
} from "../../api/rollout.ts";
import { apiVersionOf } from "../../apimachinery/objects.ts";
import { ALL_KEYS } from "../../sources/uses.ts";
import { isStampOf, stampOf } from "../../workloads/rollout-stamp.ts";
import { ABSENT, isPresent } from "../digest/digest.ts";
import type { Dependent, Step } from "../types.ts";
import type { StartedWith } from "./first-looks.ts";
import { withoutRestart } from "./reverts.ts";

/** The digest of a value that no workload has used yet: it differs from every digest. */
export const NEVER = "";

/** One rollout of a binding: the uid of the binding, and the number of the rollout. */
export interface Rollout {
  binding: string;
  revision: number;
}

/** A workload of a rollout. */
export interface AffectedWorkload {
  dependent: Dependent;
  entry: WorkloadStatus;
  /** It must be restarted. It may still be rolling out for other values. */
  isDue: boolean;
  /** Why it can't restart now: something that its pods need is missing. */
  lacks?: string;
  /** Another client reverted its restart, and it is not repeated now. */
  isReverted?: boolean;
  /** Whether its pods are younger than the values, so that it needs no restart. `unread`: that is not read yet. */
  age?: "younger" | "unread";
  /** It does not bear its restart, and what the cluster shows of that is not read yet. */
  isUnread?: boolean;
  /** Its pods wait for a user since this decision. */
  isNewlyHeld?: boolean;
  /** When to decide again. */
  requeueAfterMs?: number;
}

/** The recorded digests of the values that the workloads started with. */
interface Baseline {
  /** Of the values that are used now. */
  digests: Record<string, string>;
  /** Whether the present values were recorded without a comparison, because the old digests can't be compared any more. */
  isRenewed: boolean;
}

/**
 * The digests were computed with another key than those in the status. `former` are the present digests with that key; undefined
 * if the key no longer exists.
 */
export interface Rekeyed {
  former: Digests | undefined;
}

/**
 * The values that are used in namespaces which could not be seen until now. If a value was not known to be used there, only its
 * whole source can be compared.
 */
export function missedBy(before: RolloutStatus | undefined, dependents: readonly Dependent[]): ReadonlySet<string> {
  const namespaces = new Set(before?.unknownNamespaces);
  const there = dependents.filter(({ ref }) => namespaces.has(ref.namespace ?? ""));
  return new Set(there.flatMap(({ uses }) => [...uses]));
}

/** The digest id of all keys of a value's source. */
const allOf = (id: string) => digestId(digestParts(id).source, ALL_KEYS);

/**
 * The present baseline. A value that is used for the first time is recorded as it is, unless `rollFirst`, or it is `missed` and
 * its source has changed. A missing value changes nothing. With a new key, all digests are computed again. `now` has the digests
 * of the used values that exist.
 */
export function baselineOf(
  status: RolloutStatus | undefined,
  used: ReadonlySet<string>,
  now: Digests,
  rollFirst: boolean,
  rekeyed?: Rekeyed,
  missed: ReadonlySet<string> = new Set(),
): Baseline {
  const digests: Record<string, string> = {};
  const known = status?.digests ?? {};
  const isLost = rekeyed !== undefined && rekeyed.former === undefined;
  const compared = rekeyed?.former ?? now;
  const isMissed = (id: string) =>
    missed.has(id) && known[allOf(id)] !== undefined && known[allOf(id)] !== compared[allOf(id)];
  for (const id of [...used].sort()) {
    const [before, current] = [isLost ? undefined : known[id], now[id]];
    if (before === undefined) {
      const rolls = (rollFirst || isMissed(id)) && !isLost && isPresent(current);
      if (current !== undefined) digests[id] = rolls ? NEVER : current;
    } else if (rekeyed === undefined || current === undefined) {
      digests[id] = before;
    } else {
      digests[id] = rekeyed.former?.[id] === before ? current : NEVER;
    }
  }
  return { digests, isRenewed: isLost && Object.keys(known).length > 0 };
}

/** What is known of the values that the pods of new workloads started with. */
interface Starts {
  /** Values that the baseline has, and that some workload lacks. Only workloads that lack them restart for them. */
  late: ReadonlySet<string>;
  /** Whether the workload lacks a present value. */
  lacks(dependent: Dependent): boolean;
  /** Whether the workload started with the present value, although it differs from the baseline. */
  has(dependent: Dependent, id: string): boolean;
  /** Whether all pods of its template are younger than all these values: they started with them. */
  isYounger: StartFacts["isYounger"];
}

/** What the watches show of the pods of a workload and of a digest's source. */
export interface StartFacts {
  /** Which values the pods of the workload started with, when the rollout first sees both. */
  startedWith(dependent: Dependent, id: string): StartedWith;
  /** Whether all pods of the workload's template were created after these values. `unread`: that is not read yet. */
  isYounger(dependent: Dependent, ids: readonly string[]): boolean | "unread";
}

export function startsOf(
  dependents: readonly Dependent[],
  digests: Digests,
  { startedWith, isYounger }: StartFacts,
  baseline: Digests,
): Starts {
  const lacked = (each: Dependent) =>
    [...each.uses].filter((id) => digests[id] !== undefined && startedWith(each, id) === "former");
  const lacking = new Map(dependents.map((each) => [each.version.uid, lacked(each)]));
  const former = { ...baseline };
  return {
    late: new Set([...lacking.values()].flat().filter((id) => former[id] === digests[id])),
    lacks: ({ version }) => (lacking.get(version.uid) ?? []).length > 0,
    // With onFirstSync Rollout, every workload restarts.
    has: (each, id) => former[id] !== NEVER && startedWith(each, id) === "present",
    isYounger: (each, ids) => ids.length > 0 && ids.every((id) => former[id] !== NEVER) && isYounger(each, ids),
  };
}

/** The digests that differ from the baseline. */
export function changedFrom(baseline: Digests, now: Digests): Record<string, string> {
  return where(now, (id, digest) => baseline[id] !== undefined && baseline[id] !== digest);
}

/**
 * The digests of values that the rollout is for and that are missing now. Such a value causes no second restart, and no workload
 * restarts without it.
 */
export function goneFrom(before: Pending | undefined, baseline: Digests, now: Digests): Record<string, string> {
  return where(before?.digests ?? {}, (id) => baseline[id] !== undefined && now[id] === undefined);
}

const where = (digests: Digests, is: (id: string, digest: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(digests).filter(([id, digest]) => is(id, digest)));

/** The stamp of the restart of a workload for the changed values. */
export function stampFor({ binding, revision }: Rollout, { uses }: Pick<Dependent, "uses">, changed: Digests): string {
  const values = [...uses].sort().flatMap((id) => (changed[id] === undefined ? [] : `${id}=${changed[id]}`));
  return stampOf(binding, revision, values);
}

/**
 * The workloads of a rollout, as the status records them: those that it had and that still exist, and those that use a value
 * which has changed since. A workload that restarted for older values than the present ones must restart again. `changed`
 * includes `gone`, with the former digests. `wasUnknown` are the namespaces that could not be seen until now. `isSeen` says
 * whether the watch shows a workload at least as new as its last restart.
 */
export function affectedBy(
  before: Pending | undefined,
  wasUnknown: ReadonlySet<string>,
  rollout: Rollout,
  changed: Digests,
  gone: Digests,
  dependents: readonly Dependent[],
  steps: readonly Step[],
  now: string,
  isSeen: (dependent: Dependent) => boolean,
  starts: Starts,
): AffectedWorkload[] {
  const recordedOf = new Map(before?.workloads?.map((each) => [each.uid, each]));
  const isChanged = (id: string) => changed[id] !== undefined;
  const isNew = (id: string) => changed[id] !== undefined && before?.digests?.[id] !== changed[id];
  return dependents.flatMap((dependent) => {
    const recorded = recordedOf.get(dependent.version.uid);
    const wanted = stampFor(rollout, dependent, changed);
    const former = isSeen(dependent) ? asStamped(rollout, dependent, wanted, recorded, now) : recorded;
    const uses = [...dependent.uses];
    // A workload that was created after the change has the new values, unless its namespace could not be seen until now. A
    // workload that restarted since may have older values.
    const isMissed = wasUnknown.has(dependent.ref.namespace ?? "");
    const isAffected =
      former === undefined
        ? starts.lacks(dependent) ||
          uses.some((id) =>
            isMissed ? isChanged(id) : isNew(id) && !starts.late.has(id) && !starts.has(dependent, id),
          )
        : former.stamp !== undefined || uses.some(isChanged);
    if (!isAffected) return [];
    const known = inStep(former ?? waiting(dependent), steps[dependent.step]);
    // Another client restarted it or changed its template. It needs no restart, and has the values when it has rolled out.
    const younger = known.stamp !== wanted && starts.isYounger(dependent, uses.filter(isChanged));
    const entry = younger === true ? renewed(known, now) : known;
    const isDue = younger !== true && (entry.state === "Waiting" || entry.stamp !== wanted);
    const why = isDue ? whyLacking(dependent, changed, gone) : undefined;
    const more: Pick<AffectedWorkload, "lacks" | "age"> = {
      ...(why !== undefined && { lacks: why }),
      ...(younger !== false && { age: younger === true ? "younger" : younger }),
    };
    return [{ dependent, entry: isDue && entry.state !== "Rolling" ? waitingAgain(entry) : entry, isDue, ...more }];
  });
}

/** Why its pods could not start now. */
function whyLacking({ uses, required }: Dependent, changed: Digests, gone: Digests): string | undefined {
  const ids = [...uses];
  const missing = ids.find((id) => gone[id] !== undefined);
  if (missing !== undefined) return `the value ${missing} is missing at the moment`;
  const deleted = [...(required ?? [])].find(isAbsent);
  function isAbsent(source: string): boolean {
    return ids.some((id) => digestParts(id).source === source && changed[id] === ABSENT);
  }
  if (deleted === undefined) return undefined;
  return `its pods can't start without the source ${deleted}, which was deleted; create it again, or make the reference optional`;
}

/** Adds a restart that happened before a crash and was not recorded in the status. */
function asStamped(
  { binding, revision }: Rollout,
  dependent: Dependent,
  wanted: string,
  recorded: WorkloadStatus | undefined,
  now: string,
): WorkloadStatus | undefined {
  // If the binding named another annotation before, an older stamp may be there.
  const { stamps } = dependent.workload;
  const stamp = stamps.includes(wanted) ? wanted : stamps.find((each) => isStampOf(each, binding, revision));
  if (stamp === undefined || (stamp === recorded?.stamp && recorded.state !== "Waiting")) return recorded;
  // Its pods are younger than the values, so the stamp of earlier values does not count.
  if (recorded !== undefined && recorded.state !== "Waiting" && recorded.stamp === undefined && stamp !== wanted)
    return recorded;
  // An earlier template came back.
  if (recorded?.stamp === wanted && stamp !== wanted) return recorded;
  const former = recorded === undefined || recorded.stamp === stamp ? recorded : withoutRestart(recorded);
  return { restartTime: now, ...(former ?? waiting(dependent)), state: "Rolling", stamp };
}

/** The workload must restart once more. Its former stamp stays recorded. */
export function waitingAgain({ restartTime: _, message: __, ...entry }: WorkloadStatus): WorkloadStatus {
  return { ...entry, state: "Waiting" };
}

/** It rolls out with a template that is younger than the values, not with its own restart for earlier ones. */
function renewed(known: WorkloadStatus, now: string): WorkloadStatus {
  const { message: _, stamp: __, ...entry } = known.stamp === undefined ? known : withoutRestart(known);
  return entry.state === "Waiting" ? { ...entry, state: "Rolling", restartTime: now } : entry;
}

/** The name or the position of its step may have changed. */
function inStep({ step: _, ...entry }: WorkloadStatus, step: Step | undefined): WorkloadStatus {
  return step?.name === undefined ? entry : { ...entry, step: step.name };
}

function waiting({ ref, version }: Dependent): WorkloadStatus {
  return {
    apiVersion: apiVersionOf(ref.resource),
    kind: ref.resource.kind,
    namespace: ref.namespace ?? "",
    name: ref.name,
    uid: version.uid,
    state: "Waiting",
  };
}
