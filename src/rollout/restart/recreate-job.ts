/**
 * A Job that has ended comes in; it is deleted and made anew, as the binding's account. A copy that never runs holds it in between, and is
 * found by the Job's uid alone: each step can be taken again, by whoever was killed at any of them.
 */
import { ROLLOUT_MANAGER } from "../../api/rollout.ts";
import { describeObject, type KubeObject, type ObjectRef } from "../../apimachinery/objects.ts";
import { Problem } from "../../apimachinery/problem.ts";
import { attempt, forbidden, refusal } from "../../kube/access-error.ts";
import { isNotFound, isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../../kube/get.ts";
import type { Identity } from "../../kube/identity.ts";
import { copyName, copyOf, madeAnew, originalIn, whyNoCopy } from "../../workloads/job-copy.ts";

const CHANGED = "it has changed meanwhile";
const VERBS = ["get", "list", "watch", "create", "delete"];

type JobVerbs = "may" | "get" | "make" | "delete";

/** The annotation that its pods are to have. */
interface Mark {
  annotation: string;
  stamp: string;
}

/** Returns the new Job. Throws Problem. */
export async function recreateJob(
  client: Pick<Client, JobVerbs>,
  identity: Identity,
  ref: ObjectRef,
  uid: string,
  mark: Mark,
): Promise<KubeObject> {
  const access = { client, identity, ref, verbs: VERBS };
  const job = await getIfExists(access);
  const isFormer = job?.metadata.uid === uid;
  const isThere = isFormer && job.metadata.deletionTimestamp === undefined;
  const held = isThere ? await replaceByCopy(access, job, mark) : undefined;
  const made = (await finishRecreation(client, identity, ref, uid, mark, held)) ?? (isFormer ? undefined : job);
  if (made === undefined) throw tryAgain(ref, isFormer ? "somebody deletes it" : "it is not there");
  return made;
}

/** Deletes the Job, and returns the copy that is held in its place. Throws Problem. */
async function replaceByCopy(
  access: ObjectAccess<JobVerbs>,
  job: KubeObject,
  { annotation, stamp }: Mark,
): Promise<KubeObject> {
  const { client, identity, ref } = access;
  const { uid, resourceVersion } = job.metadata;
  const why = whyNoCopy(job);
  if (why !== undefined) throw new Problem("Rejected", `${describe(ref)} is not made anew: ${why}`);
  const copy = { ...access, ref: { ...ref, name: copyName(uid) } };
  // Who may not delete could not take the copy away either.
  if (!(await during(access, "get", never, () => client.may(identity, "delete", ref.resource, ref.namespace))))
    throw forbidden({ identity, ref: kindOf(ref), verbs: VERBS }, "delete");
  await during(copy, "create", isTaken, () => client.make(identity, copy.ref, copyOf(job), ROLLOUT_MANAGER));
  const held = await getIfExists(copy);
  const original = held && originalIn(held, uid);
  // Nothing is deleted that is not held.
  if (held === undefined || original === undefined) throw tryAgain(ref, "its copy is not there");
  if (original.resourceVersion !== resourceVersion) {
    await release(copy, held);
    throw tryAgain(ref, CHANGED);
  }
  // What admission or a quota does not take would be lost to its user.
  const whole = madeAnew(held, original, annotation, stamp);
  const tried = await attempt(
    during(access, "create", isTaken, () => client.make(identity, ref, whole, ROLLOUT_MANAGER, true)),
  );
  if (tried instanceof Problem) {
    await release(copy, held);
    throw new Problem(tried.reason, `${describe(ref)} stays as it is, it could not be made anew: ${tried.message}`);
  }
  const deleted = await attempt(during(access, "delete", isNotFound, () => client.delete(identity, ref, job)));
  if (!(deleted instanceof Problem)) return held;
  // Else it may have arrived.
  if (deleted.reason !== "Unavailable") await release(copy, held);
  throw deleted;
}

/**
 * Makes the Job of its copy, if there is one and the Job is gone: the copy which is `held`, also where somebody else has taken
 * it away since. Throws Problem.
 */
export async function finishRecreation(
  client: Pick<Client, "get" | "make" | "delete">,
  identity: Identity,
  ref: ObjectRef,
  uid: string,
  { annotation, stamp }: Mark,
  held?: KubeObject,
): Promise<KubeObject | undefined> {
  const access = { client, identity, ref, verbs: VERBS };
  const copyAccess = { ...access, ref: { ...ref, name: copyName(uid) } };
  const copy = held ?? (await getIfExists(copyAccess));
  const original = copy && originalIn(copy, uid);
  if (copy === undefined || original === undefined || original.name !== ref.name) return undefined;
  const made =
    (await during(access, "create", isTaken, () =>
      client.make(identity, ref, madeAnew(copy, original, annotation, stamp), ROLLOUT_MANAGER),
    )) ?? (await getIfExists(access));
  // Somebody holds the old one by a finalizer. One that another has made meanwhile is as good as ours.
  if (made === undefined || made.metadata.deletionTimestamp !== undefined)
    throw tryAgain(ref, "the former one is not gone yet");
  await release(copyAccess, copy);
  // The former one never was deleted.
  return made.metadata.uid === uid ? undefined : made;
}

/** Whatever version of the copy it is: the Job controller writes to it too. */
function release(access: ObjectAccess<"delete">, { metadata: { uid } }: KubeObject): Promise<void> {
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
const tryAgain = (ref: ObjectRef, why: string) =>
  new Problem("Unavailable", `${describe(ref)} is being made anew: ${why}; it is tried again`);
