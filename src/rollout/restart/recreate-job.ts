/**
 * Deletes a Job that has ended and makes it anew, as the binding's account. A copy that never runs holds it in between. Status has the uid
 * of the copy before the Job is deleted, and a Job is made of the copy with that uid alone, whose spec was never changed: anyone who may make or
 * change Jobs can forge all else. The copy is kept while the name of the Job is taken by one that differs from it.
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
  isAsMade,
  isCopyOf,
  isCreatedFrom,
  madeAnew,
  originalIn,
  originalOf,
  whyNoCopy,
} from "../../workloads/job-copy.ts";

const CHANGED = "it has changed meanwhile";
const VERBS = ["get", "list", "watch", "create", "delete"];

type JobVerbs = "may" | "get" | "make" | "delete";

/** The annotation that its pods are to have. */
interface Mark {
  annotation: string;
  stamp: string;
}

/** What status says of the copy of a Job. */
export interface CopyRecord {
  /** The uid of the copy that was there when the Job was about to be deleted. */
  readonly uid: string | undefined;
  /** Writes that uid into status. */
  write(uid: string): Promise<void>;
}

/** A Job to be made, and the copy that goes once it is. */
interface Held {
  /** Undefined where somebody has changed the copy: then nothing is made of it. */
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
  const access = { client, identity, ref, verbs: VERBS };
  const job = await getIfExists(access);
  const isFormer = job?.metadata.uid === uid;
  const isThere = isFormer && job.metadata.deletionTimestamp === undefined;
  const recreation = isThere
    ? recreateFrom(access, uid, await replaceByCopy(access, job, mark, record))
    : finishRecreation(client, identity, ref, uid, mark, record.uid);
  const made = (await recreation) ?? (isFormer ? undefined : job);
  if (made === undefined) throw tryAgain(ref, isFormer ? "somebody deletes it" : "it is not there");
  return made;
}

/** Deletes the Job once a copy is in its place. What is held is of the Job that was read, not of the copy. Throws Problem. */
async function replaceByCopy(
  access: ObjectAccess<JobVerbs>,
  job: KubeObject,
  { annotation, stamp }: Mark,
  record: CopyRecord,
): Promise<Held> {
  const { client, identity, ref } = access;
  const { uid } = job.metadata;
  const why = whyNoCopy(job);
  if (why !== undefined) throw new Problem("Rejected", `${describe(ref)} is not made anew: ${why}`);
  // Who may not delete could not take the copy away either.
  if (!(await during(access, "get", never, () => client.may(identity, "delete", ref.resource, ref.namespace))))
    throw forbidden({ identity, ref: kindOf(ref), verbs: VERBS }, "delete");
  const copy = copyAccessOf(access, uid);
  const copyUid = await ensureCopy(copy, job, ref);
  const whole = madeAnew(copyOf(job), originalOf(job), annotation, stamp);
  // What admission or a quota does not take would be lost to its user.
  const tried = await attempt(
    during(access, "create", isTaken, () => client.make(identity, ref, whole, ROLLOUT_MANAGER, true)),
  );
  if (tried instanceof Problem) {
    await release(copy, copyUid);
    throw new Problem(tried.reason, `${describe(ref)} stays as it is, it could not be made anew: ${tried.message}`);
  }
  const recorded = await attempt(record.write(copyUid));
  if (recorded instanceof Problem) {
    await release(copy, copyUid);
    throw recorded;
  }
  const deleted = await attempt(during(access, "delete", isNotFound, () => client.delete(identity, ref, job)));
  if (!(deleted instanceof Problem)) return { whole, copyUid };
  // Else it may have arrived.
  if (deleted.reason !== "Unavailable") await release(copy, copyUid);
  throw deleted;
}

/** Makes the copy of a Job. Returns its uid. One that is there counts if it is what would be made, else it goes. Throws Problem. */
async function ensureCopy(access: ObjectAccess<"get" | "make" | "delete">, job: KubeObject, of: ObjectRef) {
  const { client, identity, ref } = access;
  const make = () => client.make(identity, ref, copyOf(job), ROLLOUT_MANAGER);
  for (let tries = 0; tries < 2; tries++) {
    const made = await during(access, "create", isTaken, make);
    const copy = made ?? (await getIfExists(access));
    if (copy === undefined) break;
    const { uid } = copy.metadata;
    if (made !== undefined || isCopyOf(copy, job)) return uid;
    // It is forged, or of another version of the Job. No Job was deleted for it.
    await release(access, uid);
  }
  throw tryAgain(
    of,
    `${describe(ref)} has the name of its copy and is not its copy; if it stays, remove its finalizers`,
  );
}

/** Makes the Job that a crash has cut off, of the copy with the `recorded` uid. Undefined where there is none. Throws Problem. */
export async function finishRecreation(
  client: Pick<Client, "get" | "make" | "delete">,
  identity: Identity,
  ref: ObjectRef,
  uid: string,
  { annotation, stamp }: Mark,
  recorded: string | undefined,
): Promise<KubeObject | undefined> {
  if (recorded === undefined) return undefined;
  const access = { client, identity, ref, verbs: VERBS };
  const copy = await getIfExists(copyAccessOf(access, uid));
  if (copy?.metadata.uid !== recorded) return undefined;
  const original = isAsMade(copy) ? originalIn(copy, uid) : undefined;
  const whole = original?.name === ref.name ? madeAnew(copy, original, annotation, stamp) : undefined;
  return recreateFrom(access, uid, { whole, copyUid: recorded });
}

/** Makes a Job in place of the former one. Undefined where that never was deleted. Throws Problem. */
async function recreateFrom(
  access: ObjectAccess<"get" | "make" | "delete">,
  uid: string,
  { whole, copyUid }: Held,
): Promise<KubeObject | undefined> {
  const { client, identity, ref } = access;
  const make = async () => whole && client.make(identity, ref, whole, ROLLOUT_MANAGER);
  const made = await during(access, "create", isTaken, make);
  const job = made ?? (await getIfExists(access));
  if (job === undefined && whole === undefined) throw changedCopy(access, uid);
  const isOther = job !== undefined && job.metadata.uid !== uid;
  // A finalizer holds it.
  if (job === undefined || job.metadata.deletionTimestamp !== undefined)
    throw tryAgain(ref, `${isOther ? "another one of its name" : "the former one"} is not gone yet`);
  // An earlier try, or another binding, may have created the same.
  if (made === undefined && isOther && whole !== undefined && !isCreatedFrom(job, whole)) throw nameTaken(access, uid);
  await release(copyAccessOf(access, uid), copyUid);
  return isOther ? job : undefined;
}

/** Whether there is no object of that name. Throws Problem. */
export async function isGone(client: Pick<Client, "get">, identity: Identity, ref: ObjectRef): Promise<boolean> {
  return (await getIfExists({ client, identity, ref, verbs: VERBS })) === undefined;
}

/** The access to the copy of the Job with that uid. */
const copyAccessOf = <A extends { ref: ObjectRef }>(access: A, uid: string): A => ({
  ...access,
  ref: { ...access.ref, name: copyName(uid) },
});

/** Whatever version of the copy it is: the Job controller writes to it too. */
function release(access: ObjectAccess<"delete">, uid: string): Promise<void> {
  const { client, identity, ref } = access;
  return during(access, "delete", isNotFound, () => client.delete(identity, ref, { metadata: { uid } }));
}

/** Undefined where it failed as it may. */
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

/** The name is: what would be made was admitted, and found to be valid. */
const isTaken = (error: unknown) => isStatus(error, 409) && error.reason === "AlreadyExists";
const never = () => false;
const kindOf = ({ name: _, ...kind }: ObjectRef) => kind;
const describe = ({ resource, namespace, name }: ObjectRef) => describeObject(resource.kind, namespace, name);

function changedCopy({ ref }: Pick<ObjectAccess, "ref">, uid: string): Problem {
  const [job, copy] = [describe(ref), describe({ ...ref, name: copyName(uid) })];
  return new Problem(
    "Rejected",
    `${job} is not recreated: somebody has changed its copy, ${copy}. Check the copy and create ${job} yourself, or delete the copy if you don't need ${job}`,
  );
}

function nameTaken({ ref }: Pick<ObjectAccess, "ref">, uid: string): Problem {
  const [job, copy] = [describe(ref), describe({ ...ref, name: copyName(uid) })];
  return new Problem(
    "Rejected",
    `${job} is not recreated: somebody else has created another Job of that name meanwhile. The former one is kept in ${copy}. Delete ${job} to have it created from that copy, or delete the copy to leave ${job} as it is`,
  );
}

const tryAgain = (ref: ObjectRef, why: string) =>
  new Problem("Unavailable", `${describe(ref)} is being made anew: ${why}; it is tried again`);
