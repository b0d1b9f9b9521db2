/**
 * Adopts an object that the binding did not create. A dry run of the apply returns the adopted object; one JSON Patch
 * then makes exactly these changes to the version that was read. So a watch shows one update.
 */
import { CREATED_BY } from "../api/manifest.ts";
import { FieldPath, isNameable, keySegment, step } from "../apimachinery/field-path.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import { pointerTo } from "../apimachinery/json-pointer.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { refusal } from "../kube/access-error.ts";
import { isNotFound, isOutdated, isStatus } from "../kube/api-error.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import type { ObjectAccess } from "../kube/get.ts";
import { isChanged, tryApply } from "./create.ts";
import { immutablePaths } from "./immutable.ts";
import { pathsIn, type Whole } from "./manifest.ts";
import { fieldsOf, isEntryOf, isLeaf } from "./ownership.ts";
import { onlyTo } from "./patch.ts";
import { unwantedKeys } from "./unwanted-keys.ts";

export interface Adoption {
  operations: readonly JsonPatchOperation[];
  /** The paths that the binding would overwrite or remove, without its own label and owner reference. */
  differing: readonly string[];
}

/** The object as the API server would store it after the apply; `stale` if it changed. Throws Problem. */
export async function previewAdoption(
  access: ObjectAccess<"apply">,
  whole: Whole,
  live: KubeObject,
): Promise<KubeObject | "stale"> {
  try {
    return await tryApply(access, whole, live);
  } catch (error) {
    if (isOutdated(error) || isNotFound(error)) return "stale";
    const refused = immutablePaths(error, pathsIn(whole.object));
    const { identity, ref, verbs } = access;
    if (refused === undefined) throw refusal(error, { identity, ref, verbs }, "patch");
    const message = `${refused.join(", ")} can't be changed on an existing object, by the rules of its kind, and Inlay never deletes an object to adopt it. Set the binding to the values of the object, or delete the object so that the binding creates it`;
    throw new Problem("Conflict", message);
  }
}

/** The patch from the object that was read to the previewed one. `isGone` detects owners that no longer exist. */
export function adoptionOf(
  live: KubeObject,
  preview: KubeObject,
  fieldManager: string,
  isGone: (owner: { uid: string }) => boolean,
): Adoption {
  const { ownerReferences, managedFields = [] } = preview.metadata;
  const owners = ownerReferences?.filter((owner) => !isGone(owner));
  const metadata = {
    ...preview.metadata,
    ownerReferences: owners,
    managedFields: takenOver(managedFields, fieldManager),
  };
  const changes = changesBetween(written(live), written({ ...preview, metadata } as KubeObject));
  return {
    operations: [...changes].map(operationOf),
    differing: [...changesBetween(unmarked(live), unmarked(preview))].map(({ keys }) => textOf(keys)),
  };
}

/** Writes the patch to the version that was read, and to no other object; `stale` if it changed. Throws Problem. */
export async function adoptObject(
  access: ObjectAccess<"get" | "jsonPatch">,
  live: KubeObject,
  { operations }: Adoption,
  fieldManager: string,
): Promise<KubeObject | "stale"> {
  const { client, identity, ref, verbs } = access;
  const test: JsonPatchOperation = { op: "test", path: "/metadata/uid", value: live.metadata.uid };
  try {
    return await client.jsonPatch(identity, ref, [test, onlyTo(live), ...operations], fieldManager, false, "whole");
  } catch (error) {
    if (isOutdated(error) || isNotFound(error)) return "stale";
    // The answer is also 422 if another object has the name, or lacks a replaced value.
    if (isStatus(error, 422) && (await isChanged(access, live))) return "stale";
    throw refusal(error, { identity, ref, verbs }, "patch");
  }
}

/** The keys in the data of a Secret or ConfigMap that the binding does not write, and that the adoption keeps. */
export const keysOfOthers = (live: KubeObject, whole: Whole): string[] =>
  unwantedKeys(live, whole).flatMap(({ keys, stays }) => (stays ? [textOf(keys)] : []));

/**
 * The managedFields after the adoption. The binding owns alone what it applies, so that later applies can remove it, as
 * in an object that it created. The entries of an earlier binding of its name are dropped.
 */
function takenOver(entries: readonly ManagedFieldsEntry[], manager: string): ManagedFieldsEntry[] {
  const own = entries.find((entry) => isEntryOf(entry, manager) && entry.operation === "Apply");
  return entries.flatMap((entry) => {
    if (isEntryOf(entry, manager)) return entry === own ? [entry] : [];
    if (own === undefined || entry.subresource !== undefined) return [entry];
    const fieldsV1 = withoutFields(fieldsOf(entry), fieldsOf(own));
    return fieldsV1 === undefined ? [] : [{ ...entry, fieldsV1 }];
  });
}

/** An element in which others own another field keeps all their entries: ownership in it needs its keys. */
function withoutFields(theirs: JsonObject, ours: JsonObject): JsonObject | undefined {
  const left = Object.entries(theirs).flatMap(([name, below]): [string, JsonValue][] => {
    const own = ours[name] as JsonObject | undefined;
    if (own === undefined) return [[name, below]];
    const rest = isLeaf(own) ? undefined : withoutFields(below as JsonObject, own);
    return rest === undefined ? [] : [[name, name.startsWith("k:") ? below : rest]];
  });
  return left.every(([name]) => name === ".") ? undefined : Object.fromEntries(left);
}

interface Change {
  keys: readonly string[];
  before: unknown;
  after: unknown;
}

/** The smallest values that differ: objects are compared key by key, lists as one value. */
function* changesBetween(before: unknown, after: unknown, keys: readonly string[] = []): Generator<Change> {
  if (sameJson(before, after)) return;
  if (!isObject(before) || !isObject(after)) {
    yield { keys, before, after };
    return;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
    yield* changesBetween(step(before, keySegment(key)), step(after, keySegment(key)), [...keys, key]);
}

function operationOf({ keys, before, after }: Change): JsonPatchOperation {
  const path = pointerTo(keys);
  if (after === undefined) return { op: "remove", path };
  return { op: before === undefined ? "add" : "replace", path, value: after };
}

/** The object with only the metadata that a write may change. */
function written({ metadata, ...object }: KubeObject): object {
  const { labels, annotations, ownerReferences, managedFields } = metadata;
  return { ...object, metadata: { labels, annotations, ownerReferences, managedFields } };
}

/** The object without the fields that every adoption changes. */
function unmarked({ metadata, ...object }: KubeObject): object {
  const { [CREATED_BY]: _, ...labels } = metadata.labels ?? {};
  return { ...object, metadata: { labels, annotations: metadata.annotations ?? {} } };
}

const textOf = (keys: readonly string[]) =>
  keys.every(isNameable) ? String(new FieldPath(keys.map(keySegment))) : keys.join(".");
