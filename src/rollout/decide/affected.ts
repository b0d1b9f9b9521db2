/** The digests of now and then come in; which workloads have to restart for the difference, and by which stamp, goes out. Pure. */
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
import { ABSENT, isPresent } from "../digest/presence.ts";
import type { Dependent, Step } from "../types.ts";

/** Where a value was never seen: it differs from all. */
const NEVER = "";

/** One rollout of a binding: the uid of that, and the rollout's number. */
export interface Rollout {
  binding: string;
  revision: number;
}

/** A workload of a rollout. */
export interface AffectedWorkload {
  dependent: Dependent;
  entry: WorkloadStatus;
  /** It has to be stamped; it may be rolling out for other values still. */
  isDue: boolean;
  /** Why it can't be now: what its pods would need has gone meanwhile. */
  lacks?: string;
}

/** What the workloads stand for, and what is to become of that. */
interface Baseline {
  /** Of what is used now, as the workloads were restarted for last. */
  digests: Record<string, string>;
  /** Whether values were taken as they are since their digests can't be compared any more. */
  isRenewed: boolean;
}

/** The same digests, by another key than the one in status; without `former` that key is gone. */
export interface Rekeyed {
  former: Digests | undefined;
}

/**
 * The values that are used in namespaces which could not be seen until now. Of what was never seen to be used there, it is known only
 * whether anything of its source has changed.
 */
export function missedBy(before: RolloutStatus | undefined, dependents: readonly Dependent[]): ReadonlySet<string> {
  const namespaces = new Set(before?.unknownNamespaces);
  const there = dependents.filter(({ ref }) => namespaces.has(ref.namespace ?? ""));
  return new Set(there.flatMap(({ uses }) => [...uses]));
}

/** All keys of the source of a value. */
const allOf = (id: string) => digestId(digestParts(id).source, ALL_KEYS);

/**
 * The baseline as of now: what is used for the first time is taken as it is, unless `rollFirst`, or it is `missed` and its source has
 * changed; what is not there changes nothing; and by a new key all is written anew. `now` has what is used and there.
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

/** What differs from the baseline. */
export function changedFrom(baseline: Digests, now: Digests): Record<string, string> {
  return where(now, (id, digest) => baseline[id] !== undefined && baseline[id] !== digest);
}

/** What the rollout is for and was there until a moment ago: nobody restarts again for its going, nor begins without it. */
export function goneFrom(before: Pending | undefined, baseline: Digests, now: Digests): Record<string, string> {
  return where(before?.digests ?? {}, (id) => baseline[id] !== undefined && now[id] === undefined);
}

const where = (digests: Digests, is: (id: string, digest: string) => boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(digests).filter(([id, digest]) => is(id, digest)));

/** By which a workload is restarted for what has changed. */
export function stampFor({ binding, revision }: Rollout, { uses }: Pick<Dependent, "uses">, changed: Digests): string {
  const values = [...uses].sort().flatMap((id) => (changed[id] === undefined ? [] : `${id}=${changed[id]}`));
  return stampOf(binding, revision, values);
}

/**
 * The workloads of a rollout as status has them: those that it had, unless they are gone, and those that use what has
 * changed since. One that was restarted for other values than those of now has to be again. `changed` has what is `gone` too, as
 * it was. `wasUnknown` has the namespaces that could not be seen until now. `isSeen` says whether a workload is shown as our last stamp
 * left it, or later.
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
): AffectedWorkload[] {
  const known = new Map(before?.workloads?.map((each) => [each.uid, each]));
  const isChanged = (id: string) => changed[id] !== undefined;
  const isNew = (id: string) => changed[id] !== undefined && before?.digests?.[id] !== changed[id];
  return dependents.flatMap((dependent) => {
    const recorded = known.get(dependent.version.uid);
    const wanted = stampFor(rollout, dependent, changed);
    const former = isSeen(dependent) ? asStamped(rollout, dependent, wanted, recorded, now) : recorded;
    const uses = [...dependent.uses];
    // A workload that came after the change has the new values, unless its namespace could not be seen until now. One that was
    // restarted since does not have those of now.
    const isMissed = wasUnknown.has(dependent.ref.namespace ?? "");
    const isAffected =
      former === undefined
        ? uses.some(isMissed ? isChanged : isNew)
        : former.stamp !== undefined || uses.some(isChanged);
    if (!isAffected) return [];
    const entry = inStep(former ?? waiting(dependent), steps[dependent.step]);
    const isDue = entry.state === "Waiting" || entry.stamp !== wanted;
    const why = isDue ? whyLacking(dependent, changed, gone) : undefined;
    const lacks = why === undefined ? {} : { lacks: why };
    return [{ dependent, entry: isDue && entry.state !== "Rolling" ? waitingAgain(entry) : entry, isDue, ...lacks }];
  });
}

/** Why its pods could not start now. */
function whyLacking({ uses, required }: Dependent, changed: Digests, gone: Digests): string | undefined {
  const ids = [...uses];
  const missing = ids.find((id) => gone[id] !== undefined);
  if (missing !== undefined) return `${missing} is not there at the moment`;
  const deleted = ids.map((id) => digestParts(id).source).find((source) => required?.has(source) && isAbsent(source));
  function isAbsent(source: string): boolean {
    return ids.some((id) => digestParts(id).source === source && changed[id] === ABSENT);
  }
  if (deleted === undefined) return undefined;
  return `its pods can't start without the source ${deleted}, which was deleted; create that again, or make the reference optional`;
}

/** With what was stamped before a crash, and did not come to stand in status. */
function asStamped(
  { binding, revision }: Rollout,
  dependent: Dependent,
  wanted: string,
  recorded: WorkloadStatus | undefined,
  now: string,
): WorkloadStatus | undefined {
  // Under the key of an annotation that the binding has named before, an older one may stand.
  const { stamps } = dependent.workload;
  const stamp = stamps.includes(wanted) ? wanted : stamps.find((each) => isStampOf(each, binding, revision));
  if (stamp === undefined || (stamp === recorded?.stamp && recorded.state !== "Waiting")) return recorded;
  return { restartTime: now, ...(recorded ?? waiting(dependent)), state: "Rolling", stamp };
}

/** It is to be stamped once more. That it was before is not forgotten. */
export function waitingAgain({ restartTime: _, message: __, ...entry }: WorkloadStatus): WorkloadStatus {
  return { ...entry, state: "Waiting" };
}

/** Its step may be called otherwise by now, or be another one. */
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
