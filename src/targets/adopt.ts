/** Decides whether a binding takes over an object that it did not make: `create.adopt`. */
import type { Target } from "../api/binding.ts";
import { CREATED_BY } from "../api/manifest.ts";
import { describeObject, type KubeObject, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { type Adoption, adoptionOf, keysOfOthers, previewAdoption } from "../apply/adopt.ts";
import { pathsIn, type Whole } from "../apply/manifest.ts";
import { assertMay } from "../kube/assert-may.ts";
import { listedAsController, type ObjectAccess } from "../kube/get.ts";
import type { SyncContext } from "./dependencies.ts";
import { competingClaims } from "./precedence.ts";

/** So many fields are named in a message. */
const MAX_NAMED = 5;

/** What the target says of an object that the binding did not make. Throws Problem if it is never adopted. */
export function adoptMode({ create }: Target, ref: ObjectRef, { metadata }: KubeObject): "Equal" | "Any" {
  const described = describe(ref);
  if (create?.adopt === undefined) {
    const message = `${described} exists and was not made by this binding, so it is never touched. Delete it, set create.adopt to Equal or Any so that the binding takes it over, or take create out of the target to write into it`;
    throw new Problem("Conflict", message);
  }
  if (metadata.deletionTimestamp !== undefined) {
    const message = `${described} is being deleted, so it is not adopted; the binding makes it once it is gone`;
    throw new Problem("TargetNotFound", message);
  }
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  if (controller === undefined) return create.adopt;
  const message = `${described} is controlled by ${controller.kind} ${controller.name}, so it is not adopted. Delete that owner, or give the target another name`;
  throw new Problem("Conflict", message);
}

/**
 * How to make an object the binding's that is as it was read; `stale` if it is not any more. Nothing is written yet. Throws Problem:
 * `Conflict` if it is another binding's, or can't be taken over as it is.
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
    const message = `${describe(ref)} has another type than the binding would make, and a type can't be changed. Set type in create.manifest to that of the Secret, or delete the Secret so that the binding makes it`;
    throw new Problem("Conflict", message);
  }
  const preview = await previewAdoption(access, whole, live);
  if (preview === "stale") return preview;
  const marks = marksOf(live);
  const isGone = ({ uid }: { uid: string }) => marks.includes(uid) && context.deps.bindings.keyOf(uid) === undefined;
  const adoption = adoptionOf(live, preview, whole.maker.fieldManager, isGone);
  if (mode === "Any" || adoption.differing.length === 0) return adoption;
  const message = `${describe(ref)} exists and differs from what the binding would write, at ${bounded(adoption.differing)}, so it is not adopted. Make them equal, set create.adopt: Any to overwrite what differs, or delete the object`;
  throw new Problem("Conflict", message);
}

/** Throws Problem unless the binding is there as it was read: the garbage collector deletes what it owns if it is gone. */
export async function assertLives({ deps, binding }: SyncContext): Promise<void> {
  const { uid, namespace, name } = binding.metadata;
  const ref = { resource: SECRET_BINDINGS, name, ...(namespace !== undefined && { namespace }) };
  const now = await listedAsController(deps.client, ref);
  if (now?.metadata.uid === uid && now.metadata.deletionTimestamp === undefined) return;
  throw new Problem("Unavailable", "the binding is being deleted, so nothing is adopted");
}

/** What stays in an object beside what the binding writes, where that may be from before it was adopted. */
export function noteOnOthers(target: Target, ref: ObjectRef, live: KubeObject, whole: Whole): string[] {
  if (target.create?.adopt === undefined || !(isSecret(ref) || isConfigMap(ref))) return [];
  const keys = keysOfOthers(live, whole);
  return keys.length === 0
    ? []
    : [`keys that this binding does not write stay: ${bounded(keys)}; remove them if nothing needs them`];
}

/** Whose it is, is told to nobody who may not write the object. It is asked again later, since nothing tells when that binding goes. */
async function assertNoOtherBinding(
  context: SyncContext,
  access: ObjectAccess,
  live: KubeObject,
  { object }: Whole,
): Promise<void> {
  const { deps, binding } = context;
  const maker = marksOf(live)
    .filter((uid) => uid !== binding.metadata.uid)
    .map((uid) => deps.bindings.keyOf(uid))
    .find((key) => key !== undefined);
  const claims = competingClaims(deps, binding, access.ref, pathsIn(object).map(String));
  const holder = claims.find(({ held }) => held)?.key;
  if (maker === undefined && holder === undefined) return;
  await assertMay(access, "patch");
  const whose =
    maker !== undefined
      ? `belongs to the SecretBinding ${maker}`
      : `has fields that the SecretBinding ${holder} writes`;
  const message = `${describe(access.ref)} ${whose}, so it is not adopted. Take it out of one of the two`;
  throw new Problem("Conflict", message, "Slow");
}

/** The uids of the bindings that made the object, or own it, by what the object says. */
function marksOf({ metadata: { labels, ownerReferences = [] } }: KubeObject): string[] {
  const owners = ownerReferences.filter(
    ({ apiVersion = "", kind }) =>
      kind === SECRET_BINDINGS.kind && parseApiVersion(apiVersion).group === SECRET_BINDINGS.group,
  );
  return [labels?.[CREATED_BY] ?? [], owners.map(({ uid }) => uid)].flat();
}

const describe = ({ resource, namespace, name }: ObjectRef) => describeObject(resource.kind, namespace, name);
const isSecret = ({ resource: { group, kind } }: ObjectRef) => group === "" && kind === "Secret";
const isConfigMap = ({ resource: { group, kind } }: ObjectRef) => group === "" && kind === "ConfigMap";

const typeOf = (secret: { [field: string]: unknown }) => secret["type"] ?? "Opaque";

function bounded(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return [...names.slice(0, MAX_NAMED), ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}
