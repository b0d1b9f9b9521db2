/** Creates, corrects, deletes or releases an object that a binding creates. Never writes to objects of others. */
import type { TargetStatus } from "../api/binding.ts";
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { CREATED_BY } from "../api/manifest.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import {
  type JsonObject,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectRef,
  plainWord,
} from "../apimachinery/objects.ts";
import { Problem, UnintendedTarget } from "../apimachinery/problem.ts";
import { namespaceEnding, refusal } from "../kube/access-error.ts";
import { ApiError, isOutdated, isStatus } from "../kube/api-error.ts";
import type { Answer, JsonPatchOperation } from "../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../kube/get.ts";
import { shellWord } from "../kube/grant-commands.ts";
import { immutablePaths, immutableProblem } from "./immutable.ts";
import { type Creator, isCreatedBy, pathsIn, type Whole } from "./manifest.ts";
import { fieldsOf, isEntryOf, merged, restrictedTo } from "./ownership.ts";
import { onlyTo } from "./patch.ts";
import { removalsOf, unwantedKeys } from "./unwanted-keys.ts";

/**
 * Creates the object; `stale` if one of that name exists, which stays unchanged. Throws Problem. A dry run creates nothing: the API server
 * checks last whether the name is taken.
 */
export async function createObject(
  { client, identity, ref, verbs }: ObjectAccess<"createObject">,
  { object, creator }: Whole,
  dryRun = false,
): Promise<KubeObject | "stale"> {
  try {
    return await client.createObject(identity, ref, object, creator.fieldManager, dryRun, dryRun ? undefined : "whole");
  } catch (error) {
    if (isStatus(error, 409)) return "stale";
    throw placeless(error, ref) ?? refusal(error, { identity, ref, verbs }, "create");
  }
}

/** Corrects an object that the binding created, in the version that was read; `stale` if it changed. Throws Problem. */
export async function correctObject(
  access: ObjectAccess<"get" | "apply" | "jsonPatch">,
  whole: Whole,
  live: KubeObject,
): Promise<KubeObject | "stale"> {
  const { identity, ref, verbs } = access;
  const { fieldManager } = whole.creator;
  const removals = removalsOf(whole.isExact ? unwantedKeys(live, whole).filter(({ stays }) => stays) : []);
  try {
    const options = { fieldManager, force: true, answer: "whole" as const };
    return await applyTo(live, access, whole.object, options, { removals });
  } catch (error) {
    if (isOutdated(error) || isStatus(error, 404)) return "stale";
    // The answer is also 422 if a key to remove is gone.
    if (isStatus(error, 422) && removals.length > 0 && (await isChanged(access, live))) return "stale";
    throw immutableProblem(error, pathsIn(whole.object)) ?? refusal(error, { identity, ref, verbs }, "patch");
  }
}

export const isChanged = async (access: ObjectAccess<"get">, { metadata }: KubeObject): Promise<boolean> =>
  (await getIfExists(access))?.metadata.resourceVersion !== metadata.resourceVersion;

/** The object as the API server would store it after an apply of the whole to the version that was read. */
export function tryApply({ client, identity, ref }: ObjectAccess<"apply">, whole: Whole, live: KubeObject) {
  const { uid, resourceVersion } = live.metadata;
  const metadata = { ...(whole.object["metadata"] as JsonObject), resourceVersion };
  const options = { fieldManager: whole.creator.fieldManager, force: true, dryRun: "whole" as const };
  return client.apply(identity, ref, uid, { ...whole.object, metadata }, options);
}

/**
 * Whether the correction of an object is refused because it changes what can't change; `stale` if the object changed. A dry
 * run, which the write itself repeats for all other refusals.
 */
export async function changesImmutable(
  access: ObjectAccess<"apply">,
  whole: Whole,
  live: KubeObject,
): Promise<boolean | "stale"> {
  const isLocked = live["immutable"] === true;
  // A dry run does not remove these keys.
  if (isLocked && unwantedKeys(live, whole).some(({ stays }) => whole.isExact || !stays)) return true;
  try {
    await tryApply(access, whole, live);
    return false;
  } catch (error) {
    if (isOutdated(error) || isStatus(error, 404)) return "stale";
    if (error instanceof ApiError || error instanceof Problem) return immutablePaths(error, []) !== undefined;
    throw error;
  }
}

/** Deletes the object in the version that was read; `stale` if it changed. Throws Problem. */
export async function deleteObject(
  { client, identity, ref, verbs }: ObjectAccess<"delete">,
  live: KubeObject,
): Promise<"deleted" | "stale"> {
  try {
    await client.delete(identity, ref, live);
    return "deleted";
  } catch (error) {
    if (isStatus(error, 404) || isStatus(error, 409)) return "stale";
    throw refusal(error, { identity, ref, verbs }, "delete");
  }
}

/** Applies fields to the version that was read. If the apply is refused, the binding still owns its fields. */
export async function applyTo(
  live: KubeObject,
  { client, identity, ref }: ObjectAccess<"apply" | "jsonPatch">,
  fields: JsonObject,
  options: { fieldManager: string; force: boolean; answer?: Answer },
  { keep, removals = [] }: { keep?: readonly FieldPath[]; removals?: readonly JsonPatchOperation[] } = {},
): Promise<KubeObject> {
  const operations = [...toApplied(live, options.fieldManager, keep), ...removals];
  const patch = [onlyTo(live), ...operations];
  const current = operations.length > 0 ? await client.jsonPatch(identity, ref, patch, CONTROLLER_MANAGER) : live;
  const { uid, resourceVersion } = current.metadata;
  const metadata = { ...(fields["metadata"] as JsonObject | undefined), resourceVersion };
  return client.apply(identity, ref, uid, { ...fields, metadata }, options);
}

type Ending = "deleted" | "retained" | "gone";

const TRIES = 5;

/**
 * Deletes an object that the binding created, or removes the binding's marks. Ignores objects of others. Throws
 * Problem.
 */
export async function releaseObject(
  access: ObjectAccess<"get" | "delete" | "jsonPatch">,
  creator: Creator,
  record: TargetStatus,
  mode: "Retain" | "Remove",
): Promise<Ending> {
  const { client, identity, ref, verbs } = access;
  for (let tries = 0; tries < TRIES; tries++) {
    const live = await getIfExists(access);
    if (live === undefined || !isCreatedBy(creator.uid, live, record)) return "gone";
    if (mode === "Remove" && live.metadata.deletionTimestamp !== undefined) return "gone";
    try {
      if (mode === "Remove") {
        await client.delete(identity, ref, live);
        return "deleted";
      }
      const marks = withoutMarks(live, creator);
      if (marks.length > 0) await client.jsonPatch(identity, ref, [onlyTo(live), ...marks], CONTROLLER_MANAGER);
      return "retained";
    } catch (error) {
      if (isStatus(error, 404) || isStatus(error, 409)) continue;
      // A patch of a deleted object fails with 422, before the API server compares versions.
      if (isStatus(error, 422) && (await isChanged(access, live))) continue;
      throw refusal(error, { identity, ref, verbs }, mode === "Remove" ? "delete" : "patch");
    }
  }
  throw new Problem("Unavailable", "the object changes faster than it can be released; Inlay retries");
}

/**
 * A POST or a patch is an Update in managedFields, and an Update keeps values alive that later applies omit. So before
 * the first apply, the Update becomes an Apply: of all its paths, or of those that the binding keeps. The binding never
 * gives up ownership in between.
 */
export function toApplied(live: KubeObject, manager: string, keep?: readonly FieldPath[]): JsonPatchOperation[] {
  const entries = live.metadata.managedFields ?? [];
  const isOurs = (entry: ManagedFieldsEntry) => isEntryOf(entry, manager);
  const [first, ...more] = entries.filter(isOurs);
  if (first === undefined) return [];
  const all = merged([first, ...more].map(fieldsOf));
  const left = keep === undefined ? all : restrictedTo(all, keep);
  const removed = removals("/metadata/managedFields", entries, isOurs);
  if (left === undefined) return removed;
  if (more.length === 0 && first.operation === "Apply" && sameJson(left, first.fieldsV1)) return [];
  const path = `/metadata/managedFields/${entries.indexOf(first)}`;
  return [
    { op: "replace", path: `${path}/operation`, value: "Apply" },
    { op: "replace", path: `${path}/fieldsV1`, value: left },
    ...removed.slice(0, -1),
  ];
}

/**
 * Whether all that the manager owns is one Apply. An object without managedFields was not read, and is as last applied.
 */
export const isApplied = (live: KubeObject, manager: string): boolean => toApplied(live, manager).length === 0;

/** Removes elements of a list from the last to the first, so that the indexes stay valid. */
function removals<T>(path: string, list: readonly T[], isGone: (element: T) => boolean): JsonPatchOperation[] {
  const operations = list.map((element, index): JsonPatchOperation[] =>
    isGone(element) ? [{ op: "remove", path: `${path}/${index}` }] : [],
  );
  return operations.reverse().flat();
}

/**
 * Removes the marks of the binding: the label, the owner reference, and all of its entries in managedFields. The API
 * server ignores an empty list of entries, so an empty entry clears the list.
 */
export function withoutMarks({ metadata }: KubeObject, { uid, fieldManager }: Creator): JsonPatchOperation[] {
  const { labels = {}, ownerReferences = [], managedFields = [] } = metadata;
  const label = `/metadata/labels/${CREATED_BY.replaceAll("/", "~1")}`;
  const names = removals("/metadata/managedFields", managedFields, (entry) => isEntryOf(entry, fieldManager));
  const isAll = names.length > 0 && names.length === managedFields.length;
  return [
    ...(labels[CREATED_BY] === uid ? [{ op: "remove", path: label } as const] : []),
    ...removals("/metadata/ownerReferences", ownerReferences, (owner) => owner.uid === uid),
    ...(isAll ? [{ op: "replace", path: "/metadata/managedFields", value: [{}] } as const] : names),
  ];
}

/**
 * The problem of an object whose namespace is missing or being deleted. Only an account that may create objects there
 * gets these answers. Inlay does not watch for the namespace's creation, so it retries.
 */
function placeless(error: unknown, ref: ObjectRef): Problem | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { resource, namespace, name } = ref;
  if (error.status === 404 && error.subject.resource === "namespaces") {
    const what = `there is no namespace ${plainWord(namespace ?? "")} for ${resource.kind} ${plainWord(name)}`;
    const command = `kubectl create namespace ${shellWord(namespace ?? "")}`;
    return new Problem("TargetNotFound", { what, fix: "create it", command }, "Backoff");
  }
  if (!error.namespaceEnds) return undefined;
  return namespaceEnds(ref);
}

export const namespaceEnds = (ref: Pick<ObjectRef, "namespace">): Problem =>
  new UnintendedTarget("TargetNotFound", namespaceEnding(ref), "Slow");
