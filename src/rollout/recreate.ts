/**
 * A Job that has ended comes in; it is deleted and made anew, as the binding's account. A copy that never runs holds it in between, and is
 * found by the Job's uid alone: each step can be taken again, by whoever was killed at any of them.
 */
import { isNotFound, isStatus } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { type Access, findObject } from "../kube/find.ts";
import type { Identity } from "../kube/identity.ts";
import { refusal } from "../kube/refusal.ts";
import { copyName, copyOf, madeAnew, originalIn, whyNoCopy } from "../model/job-copy.ts";
import { describeObject, type KubeObject, type ObjectRef } from "../model/kube-object.ts";
import { Problem } from "../model/problem.ts";
import { ROLLOUT_MANAGER } from "../model/rollout.ts";

const VERBS = ["get", "list", "watch", "create", "delete"];

/** The annotation that its pods are to have. */
export interface Mark {
  annotation: string;
  stamp: string;
}

/** Returns the new Job. Throws Problem. */
export async function recreate(
  client: Client,
  identity: Identity,
  ref: ObjectRef,
  uid: string,
  mark: Mark,
): Promise<KubeObject> {
  const access = { client, identity, ref, verbs: VERBS };
  const job = await findObject(access);
  if (job?.metadata.uid === uid) {
    const why = whyNoCopy(job);
    if (why !== undefined) throw new Problem("Rejected", `${describe(ref)} is not made anew: ${why}`);
    const copy = { ...ref, name: copyName(uid) };
    await during(
      { ...access, ref: copy },
      "create",
      (error) => isStatus(error, 409),
      () => client.make(identity, copy, copyOf(job), ROLLOUT_MANAGER),
    );
    const held = await findObject({ ...access, ref: copy });
    // Nothing is deleted that is not held.
    if (held === undefined || originalIn(held, uid) === undefined) throw tryAgain(ref, "its copy is not there");
    await during(access, "delete", isNotFound, () => client.delete(identity, ref, job));
  }
  const made = (await finish(client, identity, ref, uid, mark)) ?? job;
  if (made === undefined) throw tryAgain(ref, "it is not there");
  return made;
}

/** Makes the Job of its copy, if there is one: then it is not there any more. Throws Problem. */
export async function finish(
  client: Client,
  identity: Identity,
  ref: ObjectRef,
  uid: string,
  { annotation, stamp }: Mark,
): Promise<KubeObject | undefined> {
  const access = { client, identity, ref, verbs: VERBS };
  const copyRef = { ...ref, name: copyName(uid) };
  const copy = await findObject({ ...access, ref: copyRef });
  const original = copy && originalIn(copy, uid);
  if (copy === undefined || original === undefined || original.name !== ref.name) return undefined;
  const made =
    (await during(
      access,
      "create",
      (error) => isStatus(error, 409),
      () => client.make(identity, ref, madeAnew(copy, original, annotation, stamp), ROLLOUT_MANAGER),
    )) ?? (await findObject(access));
  // Somebody holds the old one by a finalizer. One that another has made meanwhile is as good as ours.
  if (made === undefined || made.metadata.uid === uid || made.metadata.deletionTimestamp !== undefined)
    throw tryAgain(ref, "the former one is not gone yet");
  await during({ ...access, ref: copyRef }, "delete", isNotFound, () => client.delete(identity, copyRef, copy));
  return made;
}

/** Undefined where it failed as it may. */
async function during<T>(
  { identity, ref, verbs }: Access,
  verb: string,
  may: (error: unknown) => boolean,
  act: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (may(error)) return undefined;
    if (isStatus(error, 409)) throw tryAgain(ref, "it has changed meanwhile");
    const { name: _, ...kind } = ref;
    throw refusal(
      error,
      { identity, ref: verb === "create" ? kind : ref, verbs: verb === "create" ? ["create"] : verbs },
      verb,
    );
  }
}

const describe = ({ resource, namespace, name }: ObjectRef) => describeObject(resource.kind, namespace, name);
const tryAgain = (ref: ObjectRef, why: string) =>
  new Problem("Unavailable", `${describe(ref)} is being made anew: ${why}; it is tried again`);
