/**
 * Deletes an ended Job and creates it again, as the binding's account. A copy that never runs keeps its spec in between. The
 * status records the uid of the copy before the Job is deleted. A Job is recreated only from the copy with that uid whose spec
 * never changed, because a user who may create or change Jobs can forge everything else. The copy stays while a different Job has
 * the name. Completes recreations that a crash interrupted, and adds recreated Jobs to the workloads that the watches show.
 */
import { ROLLOUT_MANAGER, type RolloutStatus } from "../../api/rollout.ts";
import {
  describeRef,
  idOf,
  type JsonObject,
  type KubeObject,
  type ObjectRef,
  parseApiVersion,
} from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { JOBS } from "../../apimachinery/resources.ts";
import { attempt, forbidden, refusal } from "../../kube/access-error.ts";
import { isNotFound, isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../../kube/get.ts";
import type { Notifier } from "../../notifications/notifier.ts";
import type { EventRecorder } from "../../observability/events.ts";
import {
  copyName,
  copyOf,
  isCopyOf,
  isCreatedFrom,
  isJob,
  isUnchanged,
  jobToCreate,
  originalIn,
  originalOf,
  whyNoCopy,
} from "../../workloads/jobs.ts";
import { withWorkloads } from "../decide/intent-status.ts";
import { type Dependents, type RolloutContext, usedBy } from "../discover/dependents.ts";
import { lostJobEvent, lostJobNotification } from "../events.ts";
import type { Dependent } from "../types.ts";

const CHANGED = "it has changed in the meantime";
/** The verbs on all Jobs of a namespace: a copy has another name. */
export const JOB_VERBS = ["get", "list", "watch", "create", "delete"];

type JobVerbs = "may" | "get" | "createObject" | "delete";

/** The annotation for its pods. */
interface Mark {
  annotation: string;
  stamp: string;
}

/** The record of a Job's copy in the status. */
export interface CopyRecord {
  /** The uid of the copy that existed when the Job was about to be deleted. */
  readonly uid: string | undefined;
  /** Writes that uid to the status. */
  write(uid: string): Promise<void>;
}

/** The copies of Jobs that the status records. */
export class JobCopies {
  readonly #note: (status: RolloutStatus) => Promise<void>;
  readonly #before: RolloutStatus | undefined;
  /** The uids of the copies, by the uids of their Jobs. */
  readonly #uids: Map<string, string>;
  #last: Promise<void> = Promise.resolve();
  /** The next write, which has not begun and includes every copy until then. */
  #next: Promise<void> | undefined;

  /** `before` is the present status, with the Jobs; `note` writes a status. */
  constructor(before: RolloutStatus | undefined, note: (status: RolloutStatus) => Promise<void>) {
    this.#note = note;
    this.#before = before;
    const recorded = before?.pending?.workloads ?? [];
    this.#uids = new Map(recorded.flatMap(({ uid, copyUID }) => (copyUID === undefined ? [] : [[uid, copyUID]])));
  }

  /** The record for the Job with that uid. */
  of(job: string): CopyRecord {
    return { uid: this.#uids.get(job), write: (copy) => this.#write(job, copy) };
  }

  /** A status with the copies. */
  in(status: RolloutStatus): RolloutStatus {
    return withWorkloads(status, (each) => {
      const copyUID = this.#uids.get(each.uid);
      return copyUID === undefined ? each : { ...each, copyUID };
    });
  }

  /** The present status. */
  get status(): RolloutStatus | undefined {
    return this.#before && this.in(this.#before);
  }

  #write(job: string, copy: string): Promise<void> {
    if (this.#uids.get(job) === copy) return this.#last;
    this.#uids.set(job, copy);
    this.#next ??= this.#last
      .catch(() => undefined)
      .then(async () => {
        this.#next = undefined;
        if (this.status !== undefined) await this.#note(this.status);
      });
    this.#last = this.#next;
    return this.#next;
  }
}

/** A Job to create, and the copy to delete afterwards. */
interface Held {
  /** Undefined if another client has changed the copy: then no Job is created from it. */
  whole: JsonObject | undefined;
  copyUid: string;
}

/** Returns the new Job. Throws Problem. */
export async function recreateJob(
  access: ObjectAccess<JobVerbs>,
  uid: string,
  mark: Mark,
  record: CopyRecord,
): Promise<KubeObject> {
  const { ref } = access;
  const job = await getIfExists(access);
  const isFormer = job?.metadata.uid === uid;
  const isThere = isFormer && job.metadata.deletionTimestamp === undefined;
  const recreation = isThere
    ? recreateFrom(access, uid, await replaceByCopy(access, job, mark, record))
    : finishRecreation(access, uid, mark, record.uid);
  const present = (await recreation) ?? (isFormer ? undefined : job);
  if (present === undefined) throw tryAgain(ref, isFormer ? "another client deletes it" : "it does not exist");
  return present;
}

/** Creates a copy of the Job, then deletes the Job. Returns what was read of the Job, not of the copy. Throws Problem. */
async function replaceByCopy(
  access: ObjectAccess<JobVerbs>,
  job: KubeObject,
  { annotation, stamp }: Mark,
  record: CopyRecord,
): Promise<Held> {
  const { client, identity, ref } = access;
  const { uid } = job.metadata;
  const why = whyNoCopy(job);
  if (why !== undefined) throw new Problem("Rejected", `${describeRef(ref)} is not recreated: ${why}`);
  // An account that may not delete Jobs could not delete the copy either.
  if (!(await during(access, "get", never, () => client.may(identity, "delete", ref.resource, ref.namespace))))
    throw forbidden({ identity, ref: kindOf(ref), verbs: JOB_VERBS }, "delete");
  const copy = copyAccessOf(access, uid);
  const copyUid = await ensureCopy(copy, job, ref);
  const whole = jobToCreate(copyOf(job), originalOf(job), annotation, stamp);
  // A Job that admission or a quota refuses would be lost.
  const tried = await attempt(
    during(access, "create", isTaken, () => client.createObject(identity, ref, whole, ROLLOUT_MANAGER, true)),
  );
  if (tried instanceof Problem) {
    await release(copy, copyUid);
    throw tried.within(`${describeRef(ref)} is unchanged, because it could not be recreated`);
  }
  const recorded = await attempt(record.write(copyUid));
  if (recorded instanceof Problem) {
    await release(copy, copyUid);
    throw recorded;
  }
  const deleted = await attempt(during(access, "delete", isNotFound, () => client.delete(identity, ref, job)));
  if (!(deleted instanceof Problem)) return { whole, copyUid };
  // The deletion may have arrived, so the copy stays.
  if (deleted.reason !== "Unavailable") await release(copy, copyUid);
  throw deleted;
}

/**
 * Creates the copy of a Job. Returns its uid. An existing copy is used if it is equal to a new one, and deleted otherwise. Throws
 * Problem.
 */
async function ensureCopy(access: ObjectAccess<"get" | "createObject" | "delete">, job: KubeObject, of: ObjectRef) {
  const { client, identity, ref } = access;
  const make = () => client.createObject(identity, ref, copyOf(job), ROLLOUT_MANAGER);
  for (let tries = 0; tries < 2; tries++) {
    const created = await during(access, "create", isTaken, make);
    const copy = created ?? (await getIfExists(access));
    if (copy === undefined) break;
    const { uid } = copy.metadata;
    if (created !== undefined || isCopyOf(copy, job)) return uid;
    // It is forged, or of another version of the Job. No Job was deleted for it.
    await release(access, uid);
  }
  throw tryAgain(
    of,
    `${describeRef(ref)} has the name of its copy but is not its copy; if it remains, remove its finalizers`,
  );
}

/**
 * Completes a recreation that a crash interrupted, from the copy with the `recorded` uid. Undefined if there is none. Throws
 * Problem.
 */
export async function finishRecreation(
  access: ObjectAccess<"get" | "createObject" | "delete">,
  uid: string,
  { annotation, stamp }: Mark,
  recorded: string | undefined,
): Promise<KubeObject | undefined> {
  if (recorded === undefined) return undefined;
  const copy = await getIfExists(copyAccessOf(access, uid));
  if (copy?.metadata.uid !== recorded) return undefined;
  const original = isUnchanged(copy) ? originalIn(copy, uid) : undefined;
  const whole = original?.name === access.ref.name ? jobToCreate(copy, original, annotation, stamp) : undefined;
  return recreateFrom(access, uid, { whole, copyUid: recorded });
}

/** Creates a Job in place of the former one. Undefined if the former one was not deleted. Throws Problem. */
async function recreateFrom(
  access: ObjectAccess<"get" | "createObject" | "delete">,
  uid: string,
  { whole, copyUid }: Held,
): Promise<KubeObject | undefined> {
  const { client, identity, ref } = access;
  const make = async () => whole && client.createObject(identity, ref, whole, ROLLOUT_MANAGER);
  const created = await during(access, "create", isTaken, make);
  const job = created ?? (await getIfExists(access));
  if (job === undefined && whole === undefined) throw notRecreated(access, uid, "changedCopy");
  const isOther = job !== undefined && job.metadata.uid !== uid;
  // A finalizer keeps the former Job.
  if (job === undefined || job.metadata.deletionTimestamp !== undefined)
    throw tryAgain(ref, `${isOther ? "another Job of that name" : "the former Job"} is not deleted yet`);
  // An earlier try, or another binding, may have created the same Job.
  if (created === undefined && isOther && whole !== undefined && !isCreatedFrom(job, whole))
    throw notRecreated(access, uid, "nameTaken");
  await release(copyAccessOf(access, uid), copyUid);
  return isOther ? job : undefined;
}

/** The access to the copy of the Job with that uid. */
const copyAccessOf = <A extends { ref: ObjectRef }>(access: A, uid: string): A => ({
  ...access,
  ref: { ...access.ref, name: copyName(uid) },
});

/** Deletes the copy whatever its version, because the Job controller writes to it too. */
function release(access: ObjectAccess<"delete">, uid: string): Promise<void> {
  const { client, identity, ref } = access;
  return during(access, "delete", isNotFound, () => client.delete(identity, ref, { metadata: { uid } }));
}

/** Undefined if it failed with an expected error. */
async function during<T>(
  { identity, ref, verbs }: Pick<ObjectAccess, "identity" | "ref" | "verbs">,
  verb: string,
  may: (error: unknown) => boolean,
  act: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (may(error)) return undefined;
    if (isStatus(error, 409)) throw tryAgain(ref, CHANGED);
    const use = verb === "create" ? { ref: kindOf(ref), verbs: [verb] } : { ref, verbs };
    throw refusal(error, { identity, ...use }, verb);
  }
}

/** The object was admitted and valid, and only its name is taken. */
export const isTaken = (error: unknown) => isStatus(error, 409) && error.reason === "AlreadyExists";
const never = () => false;
const kindOf = ({ name: _, ...kind }: ObjectRef) => kind;

function notRecreated({ ref }: Pick<ObjectAccess, "ref">, uid: string, why: "changedCopy" | "nameTaken"): Problem {
  const [job, copy] = [describeRef(ref), describeRef({ ...ref, name: copyName(uid) })];
  const reasons = {
    changedCopy: `another user has changed its copy, ${copy}. Check the copy and create ${job} yourself, or delete the copy if you don't need ${job}`,
    nameTaken: `another user has created a different Job of that name. The former Job is kept in ${copy}. Delete ${job} to recreate it from that copy, or delete the copy to keep ${job} as it is`,
  };
  return new Problem("Rejected", `${job} is not recreated: ${reasons[why]}`);
}

const tryAgain = (ref: ObjectRef, why: string) =>
  new Problem("Unavailable", `${describeRef(ref)} is being recreated: ${why}; Inlay retries`);

/** A recreated Job, until watches show it. */
export interface RecreatedJob {
  dependent: Dependent;
  at: number;
}

/** A recreated Job that no watch shows within this time was deleted meanwhile. */
export const SHOWN_WITHIN_MS = 30_000;

export function recreated({ ...former }: Dependent, { metadata }: KubeObject, stamp: string): RecreatedJob {
  const { uid, resourceVersion, generation } = metadata;
  const progress = { state: "Rolling", message: "it was recreated" } as const;
  const workload = { ...former.workload, progress, stamps: [stamp] };
  return { dependent: { ...former, version: { uid, resourceVersion, generation }, workload }, at: performance.now() };
}

/**
 * `recreated` is by the uids of the former Jobs. A recreated Job is forgotten once watches show it and the status records it. A Job
 * that another client created does not have our stamp.
 */
export function withRecreated(
  dependents: Dependents,
  recreated: Map<string, RecreatedJob>,
  status: RolloutStatus | undefined,
): Dependents {
  if (recreated.size === 0) return dependents;
  const shown = new Set(dependents.all.map(({ version }) => version.uid));
  const recorded = new Set(status?.pending?.workloads?.map(({ uid }) => uid));
  const unrecorded = new Map<string, readonly string[]>();
  const now = performance.now();
  const unshown: Dependent[] = [];
  for (const [former, { dependent, at }] of recreated) {
    const { uid } = dependent.version;
    const isShown = shown.has(uid);
    const isUnrecorded = isShown && status?.pending !== undefined && !recorded.has(uid);
    if (isUnrecorded) unrecorded.set(uid, dependent.workload.stamps);
    else if (!isShown && at + SHOWN_WITHIN_MS >= now) unshown.push(dependent);
    else if (!shown.has(former)) recreated.delete(former);
  }
  const others = dependents.all
    .filter(({ version }) => !recreated.has(version.uid))
    .map((each): Dependent => {
      const stamps = [...each.workload.stamps, ...(unrecorded.get(each.version.uid) ?? [])];
      return { ...each, workload: { ...each.workload, stamps } };
    });
  const all = [...others, ...unshown].sort((a, b) => a.step - b.step);
  const there = new Set(all.map(({ ref }) => idOf(ref)));
  return {
    ...dependents,
    all,
    used: usedBy(all),
    missing: dependents.missing.filter((ref) => !there.has(idOf(ref))),
  };
}

/**
 * Completes interrupted recreations, and returns whether there was one: the watches show it in a moment. A Job that was not
 * deleted yet does not change. The status records which Jobs were about to be recreated, and from which copies. `settled` has the
 * uids of former Jobs that were recreated, or reported as lost. Throws Problem after all others were tried.
 */
export async function finishCutOff(
  {
    client,
    events,
    notifier,
  }: {
    client: Pick<Client, "get" | "createObject" | "delete">;
    events: Pick<EventRecorder, "record">;
    notifier: Pick<Notifier, "notify">;
  },
  { binding, identity, dependents, spec }: Pick<RolloutContext, "binding" | "identity" | "dependents" | "spec">,
  before: RolloutStatus | undefined,
  settled: Set<string>,
): Promise<boolean> {
  // The Job may exist and not be listed yet.
  if (dependents.pending) return false;
  const shown = new Set(dependents.all.map(({ version }) => version.uid));
  let isOne = false;
  let problem: Problem | undefined;
  for (const { apiVersion, kind, namespace, name, uid, state, stamp, copyUID } of before?.pending?.workloads ?? []) {
    const { group } = parseApiVersion(apiVersion);
    if (!isJob({ group, kind }) || state !== "Waiting" || stamp === undefined) continue;
    if (shown.has(uid) || settled.has(uid)) continue;
    const ref = { resource: JOBS, namespace, name };
    const access = { client, identity, ref, verbs: JOB_VERBS };
    const mark = { annotation: spec.stamp.annotation, stamp };
    const job = await attempt(finishRecreation(access, uid, mark, copyUID));
    if (job instanceof Problem) {
      problem ??= job;
      continue;
    }
    isOne ||= job !== undefined;
    const isLost = job === undefined && copyUID !== undefined && (await getIfExists(access)) === undefined;
    if (isLost) {
      events.record(binding, lostJobEvent(ref, copyName(uid)));
      notifier.notify(lostJobNotification(binding, ref, uid));
    }
    if (job !== undefined || isLost) settled.add(uid);
  }
  if (problem !== undefined) throw problem;
  return isOne;
}
