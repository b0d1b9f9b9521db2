/** Decides whether a binding adopts an object that it did not create: `create.adopt`. */
import type { Target } from "../api/binding.ts";
import { CREATED_BY } from "../api/manifest.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { describeRef, type KubeObject, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { type Adoption, adoptionOf, keysOfOthers, previewAdoption } from "../apply/adopt.ts";
import { pathsIn, type Whole } from "../apply/manifest.ts";
import { withoutUnwanted } from "../apply/unwanted-keys.ts";
import { assertMay, listedAsController, type ObjectAccess } from "../kube/get.ts";
import type { SyncContext } from "./dependencies.ts";
import { competingClaims } from "./precedence.ts";

/** The limit of fields in a message. */
const MAX_NAMED = 5;

/** How the target adopts an object that the binding did not create. Throws Problem if it does not. */
export function adoptMode({ create }: Target, ref: ObjectRef, { metadata }: KubeObject): "Equal" | "Any" {
  const described = describeRef(ref);
  if (create?.adopt === undefined) {
    const message = `${described} exists and was not created by this binding, so Inlay does not change it. Delete it, set create.adopt to Equal or Any to adopt it, or remove create from the target to write into it`;
    throw new Problem("Conflict", message);
  }
  if (metadata.deletionTimestamp !== undefined) {
    const message = `${described} is being deleted, so it is not adopted; Inlay creates it after the deletion`;
    throw new Problem("TargetNotFound", message);
  }
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  if (controller === undefined) return create.adopt;
  const message = `${described} is controlled by ${controller.kind} ${controller.name}, so it is not adopted. Delete that owner, or give the target another name`;
  throw new Problem("Conflict", message);
}

/**
 * Plans the adoption of an object as it was read; `stale` if it has changed. Writes nothing yet. Throws Problem:
 * `Conflict` if the object belongs to another binding, or can't be adopted as it is.
 */
export async function decideAdoption(
  context: SyncContext,
  mode: "Equal" | "Any",
  access: ObjectAccess,
  live: KubeObject,
  whole: Whole,
): Promise<Adoption | "stale"> {
  const { ref } = access;
  await assertNoOtherBinding(context, access, live, whole);
  if (isSecret(ref) && typeOf(whole.object) !== typeOf(live)) {
    const message = `${describeRef(ref)} has another type than the binding's Secret, and a type can't be changed. Set type in create.manifest to the type of the Secret, or delete the Secret so that the binding creates it`;
    throw new Problem("Conflict", message);
  }
  const preview = await previewAdoption(access, whole, live);
  if (preview === "stale") return preview;
  const marks = new Set(marksOf(live));
  const wanted = whole.isExact ? withoutUnwanted(preview, whole) : preview;
  const isGone = ({ uid }: { uid: string }) => marks.has(uid) && context.deps.bindings.keyOf(uid) === undefined;
  const adoption = adoptionOf(live, wanted, whole.creator.fieldManager, isGone);
  if (mode === "Any" || adoption.differing.length === 0) return adoption;
  const message = `${describeRef(ref)} exists and differs from what the binding would write, at ${firstOf(adoption.differing, MAX_NAMED)}, so it is not adopted. Make them equal, set create.adopt: Any to overwrite these fields, or delete the object`;
  throw new Problem("Conflict", message);
}

/**
 * Throws Problem unless the binding exists as it was read: the garbage collector deletes dependents of a deleted
 * binding.
 */
export async function assertBindingExists({ deps, binding }: SyncContext): Promise<void> {
  const { uid, namespace, name } = binding.metadata;
  const ref = { resource: SECRET_BINDINGS, name, ...(namespace !== undefined && { namespace }) };
  const now = await listedAsController(deps.client, ref);
  if (now?.metadata.uid === uid && now.metadata.deletionTimestamp === undefined) return;
  throw new Problem("Unavailable", "the binding is being deleted, so nothing is adopted");
}

/** Notes keys that may be from before the adoption: the binding does not write them, and they stay. */
export function noteOnOthers(target: Target, ref: ObjectRef, live: KubeObject, whole: Whole): string[] {
  if (target.create?.adopt === undefined || whole.isExact || !(isSecret(ref) || isConfigMap(ref))) return [];
  const keys = keysOfOthers(live, whole);
  return keys.length === 0
    ? []
    : [
        `the object has keys that this binding does not write: ${firstOf(keys, MAX_NAMED)}; remove them if nothing needs them`,
      ];
}

/**
 * Names the other binding only to accounts that may write the object. Retried later, because no watch shows when that
 * binding is deleted.
 */
async function assertNoOtherBinding(
  context: SyncContext,
  access: ObjectAccess,
  live: KubeObject,
  { object }: Whole,
): Promise<void> {
  const { deps, binding } = context;
  const creatorKey = marksOf(live)
    .filter((uid) => uid !== binding.metadata.uid)
    .map((uid) => deps.bindings.keyOf(uid))
    .find((key) => key !== undefined);
  const namespace = binding.metadata.namespace as string;
  const paths = await deps.cpu.run(namespace, () => pathsIn(object).map(String));
  const claims = await deps.cpu.steps(namespace, competingClaims(deps, binding, access.ref, [paths]));
  const holder = claims.find(({ held }) => held)?.key;
  if (creatorKey === undefined && holder === undefined) return;
  await assertMay(access, "patch");
  const whose =
    creatorKey !== undefined
      ? `belongs to the SecretBinding ${creatorKey}`
      : `has fields that the SecretBinding ${holder} writes`;
  const message = `${describeRef(access.ref)} ${whose}, so it is not adopted. Remove it from one of the two bindings`;
  throw new Problem("Conflict", message, "Slow");
}

/** The uids of the bindings that created or own the object, by its label and owner references. */
function marksOf({ metadata: { labels, ownerReferences = [] } }: KubeObject): string[] {
  const owners = ownerReferences.filter(
    ({ apiVersion = "", kind }) =>
      kind === SECRET_BINDINGS.kind && parseApiVersion(apiVersion).group === SECRET_BINDINGS.group,
  );
  return [labels?.[CREATED_BY] ?? [], owners.map(({ uid }) => uid)].flat();
}

const isSecret = ({ resource: { group, kind } }: ObjectRef) => group === "" && kind === "Secret";
const isConfigMap = ({ resource: { group, kind } }: ObjectRef) => group === "" && kind === "ConfigMap";

const typeOf = (secret: { [field: string]: unknown }) => secret["type"] ?? "Opaque";
