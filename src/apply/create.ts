/**
 * An object that a binding makes comes in as a whole; one request makes it, puts it right, deletes it, or gives it up.
 * What stands there under its name and was made by others is never written.
 */

import type { TargetStatus } from "../api/binding.ts";
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { CREATED_BY } from "../api/manifest.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { JsonObject, KubeObject, ManagedFieldsEntry, ObjectRef } from "../apimachinery/objects.ts";
import { NotMeant, Problem } from "../apimachinery/problem.ts";
import { refusal } from "../kube/access-error.ts";
import { ApiError, isStatus } from "../kube/api-error.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import { type Access, findObject } from "../kube/get.ts";
import { immutableProblem } from "./immutable.ts";
import { entriesOf, isMadeBy, isOf, type Maker, merged, pathsIn, type Whole } from "./manifest.ts";
import { restrictedTo } from "./ownership.ts";
import { onlyTo } from "./patch.ts";

/** Makes the object by a request that touches none that is there; `stale` if one is. Throws Problem. */
export async function makeObject(
  { client, identity, ref, verbs }: Access,
  whole: Whole,
): Promise<KubeObject | "stale"> {
  try {
    return await client.make(identity, ref, whole.object, whole.maker.fieldManager);
  } catch (error) {
    if (isStatus(error, 409)) return "stale";
    throw placeless(error, ref) ?? refusal(error, { identity, ref, verbs }, "create");
  }
}

/**
 * Puts an object that the binding made right, as a whole: what is in it no more goes. Only in the version that was read;
 * `stale` when it changed in between. Throws Problem.
 */
export async function correctObject(
  { client, identity, ref, verbs }: Access,
  whole: Whole,
  live: KubeObject,
): Promise<KubeObject | "stale"> {
  const { fieldManager } = whole.maker;
  try {
    const asApplied = toApplied(live, fieldManager);
    const { uid, resourceVersion } = (
      asApplied.length > 0
        ? await client.jsonPatch(identity, ref, [onlyTo(live), ...asApplied], CONTROLLER_MANAGER)
        : live
    ).metadata;
    const leaves = { ...whole.object, metadata: { ...(whole.object["metadata"] as JsonObject), resourceVersion } };
    return await client.apply(identity, ref, uid, leaves, { fieldManager, force: true });
  } catch (error) {
    if (isStatus(error, 409) || isStatus(error, 404)) return "stale";
    throw immutableProblem(error, pathsIn(whole.object)) ?? refusal(error, { identity, ref, verbs }, "patch");
  }
}

export type Ending = "deleted" | "retained" | "gone";

const TRIES = 5;

/** Deletes what the binding made, or takes its marks off it. An object of others is left alone. Throws Problem. */
export async function releaseObject(
  access: Access,
  maker: Maker,
  record: TargetStatus,
  mode: "Retain" | "Remove",
): Promise<Ending> {
  const { client, identity, ref, verbs } = access;
  for (let tries = 0; tries < TRIES; tries++) {
    const live = await findObject(access);
    if (live === undefined || !isMadeBy(maker.uid, live, record)) return "gone";
    if (mode === "Remove" && live.metadata.deletionTimestamp !== undefined) return "gone";
    try {
      if (mode === "Remove") {
        await client.delete(identity, ref, live);
        return "deleted";
      }
      const marks = withoutMarks(live, maker);
      if (marks.length > 0) await client.jsonPatch(identity, ref, [onlyTo(live), ...marks], CONTROLLER_MANAGER);
      return "retained";
    } catch (error) {
      if (isStatus(error, 404) || isStatus(error, 409)) continue;
      // A patch of what is gone meanwhile is answered with 422 before versions are compared.
      const isStale = async () =>
        (await findObject(access))?.metadata.resourceVersion !== live.metadata.resourceVersion;
      if (isStatus(error, 422) && (await isStale())) continue;
      throw refusal(error, { identity, ref, verbs }, mode === "Remove" ? "delete" : "patch");
    }
  }
  throw new Problem("Unavailable", "the object changes faster than it can be released; it is tried again");
}

/**
 * What was posted or patched stands in managedFields as an update, and an update keeps alive what later applies leave out.
 * So it becomes an apply, before the first one: of all, or of the paths that stay ours. Never is it given up in between.
 */
export function toApplied(live: KubeObject, manager: string, keep?: readonly FieldPath[]): JsonPatchOperation[] {
  const entries = live.metadata.managedFields ?? [];
  const own = [...entries.keys()].filter((index) => isOf(manager, entries[index] as object));
  const [first, ...more] = own;
  if (first === undefined) return [];
  const all = merged(entriesOf(manager, entries));
  const left = keep === undefined ? all : restrictedTo(all, keep);
  const path = (index: number) => `/metadata/managedFields/${index}`;
  const remove = (index: number): JsonPatchOperation => ({ op: "remove", path: path(index) });
  // From the last, so that each is still where it was.
  if (left === undefined) return own.reverse().map(remove);
  const { operation, fieldsV1 } = entries[first] as ManagedFieldsEntry;
  if (more.length === 0 && operation === "Apply" && sameJson(left, fieldsV1)) return [];
  return [
    { op: "replace", path: `${path(first)}/operation`, value: "Apply" },
    { op: "replace", path: `${path(first)}/fieldsV1`, value: left },
    ...more.reverse().map(remove),
  ];
}

/**
 * Takes off what says that the binding made the object: label, owner, and all of its names in managedFields. A list of
 * those that is empty is not heeded; one of an empty entry clears it.
 */
export function withoutMarks({ metadata }: KubeObject, { uid, fieldManager }: Maker): JsonPatchOperation[] {
  const { labels = {}, ownerReferences = [], managedFields = [] } = metadata;
  const remove = (path: string): JsonPatchOperation => ({ op: "remove", path });
  const places = (list: readonly object[], isOurs: (index: number) => boolean, path: string) =>
    [...list.keys()]
      .filter(isOurs)
      .reverse()
      .map((index) => remove(`${path}/${index}`));
  const names = places(
    managedFields,
    (index) => isOf(fieldManager, managedFields[index] as object),
    "/metadata/managedFields",
  );
  const isAll = names.length > 0 && names.length === managedFields.length;
  return [
    ...(labels[CREATED_BY] === uid ? [remove(`/metadata/labels/${CREATED_BY.replaceAll("/", "~1")}`)] : []),
    ...places(ownerReferences, (index) => ownerReferences[index]?.uid === uid, "/metadata/ownerReferences"),
    ...(isAll ? [{ op: "replace", path: "/metadata/managedFields", value: [{}] } as const] : names),
  ];
}

/** Why nothing can be made where it should be, if that is its namespace. Nothing tells when one of that name comes. */
function placeless(error: unknown, ref: ObjectRef): Problem | undefined {
  if (!(error instanceof ApiError)) return undefined;
  if (error.status === 404 && error.subject.resource === "namespaces") return noNamespace(ref);
  if (!error.namespaceEnds) return undefined;
  const message = `namespace ${ref.namespace} is being deleted; nothing can be made in it`;
  return new NotMeant("TargetNotFound", message, "late");
}

export function noNamespace({ resource, namespace, name }: ObjectRef): Problem {
  const message = `there is no namespace ${namespace}; ${resource.kind} ${name} is made in it once there is`;
  return new Problem("TargetNotFound", message, "soon");
}
