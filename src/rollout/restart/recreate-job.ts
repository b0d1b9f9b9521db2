/**
 * Deletes an ended Job and creates it again, as the binding's account. A copy that never runs keeps its spec in between. The
 * status records the uid of the copy before the Job is deleted. A Job is recreated only from the copy with that uid whose spec
 * never changed, because a user who may create or change Jobs can forge everything else. The copy stays while a different Job has
 * the name.
 */
import { ROLLOUT_MANAGER } from "../../api/rollout.ts";
import { describeObject, type JsonObject, type KubeObject, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt, forbidden, refusal } from "../../kube/access-error.ts";
import { isNotFound, isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import {
  copyName,
  copyOf,
  isCopyOf,
  isCreatedFrom,
  isUnchanged,
  jobToCreate,
  originalIn,
  originalOf,
  whyNoCopy,
} from "../../workloads/job-copy.ts";

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

/** A Job to create, and the copy to delete afterwards. */
interface Held {
  /** Undefined if another client has changed the copy: then no Job is created from it. */
  whole: JsonObject | undefined;
  copyUid: string;
}

/** Returns the new Job. Throws Problem. */
export async function recreateJob(
  client: Pick<Client, JobVerbs>,
  identity: Identity,
  ref: ObjectRef,
  uid: string,
  mark: Mark,
  record: CopyRecord,
): Promise<KubeObject> {
  const access = { client, identity, ref, verbs: JOB_VERBS };
  const job = await getIfExists(access);
  const isFormer = job?.metadata.uid === uid;
  const isThere = isFormer && job.metadata.deletionTimestamp === undefined;
  const recreation = isThere
    ? recreateFrom(access, uid, await replaceByCopy(access, job, mark, record))
    : finishRecreation(client, identity, ref, uid, mark, record.uid);
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
  if (why !== undefined) throw new Problem("Rejected", `${describe(ref)} is not recreated: ${why}`);
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
    throw tried.within(`${describe(ref)} is unchanged, because it could not be recreated`);
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
    `${describe(ref)} has the name of its copy but is not its copy; if it remains, remove its finalizers`,
  );
}

/**
 * Completes a recreation that a crash interrupted, from the copy with the `recorded` uid. Undefined if there is none. Throws
 * Problem.
 */
export async function finishRecreation(
  client: Pick<Client, "get" | "createObject" | "delete">,
  identity: Identity,
  ref: ObjectRef,
  uid: string,
  { annotation, stamp }: Mark,
  recorded: string | undefined,
): Promise<KubeObject | undefined> {
  if (recorded === undefined) return undefined;
  const access = { client, identity, ref, verbs: JOB_VERBS };
  const copy = await getIfExists(copyAccessOf(access, uid));
  if (copy?.metadata.uid !== recorded) return undefined;
  const original = isUnchanged(copy) ? originalIn(copy, uid) : undefined;
  const whole = original?.name === ref.name ? jobToCreate(copy, original, annotation, stamp) : undefined;
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
  if (job === undefined && whole === undefined) throw changedCopy(access, uid);
  const isOther = job !== undefined && job.metadata.uid !== uid;
  // A finalizer keeps the former Job.
  if (job === undefined || job.metadata.deletionTimestamp !== undefined)
    throw tryAgain(ref, `${isOther ? "another Job of that name" : "the former Job"} is not deleted yet`);
  // An earlier try, or another binding, may have created the same Job.
  if (created === undefined && isOther && whole !== undefined && !isCreatedFrom(job, whole))
    throw nameTaken(access, uid);
  await release(copyAccessOf(access, uid), copyUid);
  return isOther ? job : undefined;
}

/** Whether no object has that name. Throws Problem. */
export async function isGone(client: Pick<Client, "get">, identity: Identity, ref: ObjectRef): Promise<boolean> {
  return (await getIfExists({ client, identity, ref, verbs: JOB_VERBS })) === undefined;
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
const isTaken = (error: unknown) => isStatus(error, 409) && error.reason === "AlreadyExists";
const never = () => false;
const kindOf = ({ name: _, ...kind }: ObjectRef) => kind;
const describe = ({ resource, namespace, name }: ObjectRef) => describeObject(resource.kind, namespace, name);

function changedCopy({ ref }: Pick<ObjectAccess, "ref">, uid: string): Problem {
  const [job, copy] = [describe(ref), describe({ ...ref, name: copyName(uid) })];
  return new Problem(
    "Rejected",
    `${job} is not recreated: another user has changed its copy, ${copy}. Check the copy and create ${job} yourself, or delete the copy if you don't need ${job}`,
  );
}

function nameTaken({ ref }: Pick<ObjectAccess, "ref">, uid: string): Problem {
  const [job, copy] = [describe(ref), describe({ ...ref, name: copyName(uid) })];
  return new Problem(
    "Rejected",
    `${job} is not recreated: another user has created a different Job of that name. The former Job is kept in ${copy}. Delete ${job} to recreate it from that copy, or delete the copy to keep ${job} as it is`,
  );
}

const tryAgain = (ref: ObjectRef, why: string) =>
  new Problem("Unavailable", `${describe(ref)} is being recreated: ${why}; Inlay retries`);
