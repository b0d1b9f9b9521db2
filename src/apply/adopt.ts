/**
 * Takes over an object that the binding did not make. A dry run of the apply says what the object would be; one JSON Patch makes exactly
 * that of the version that was read, so a watch sees one update.
 */
import { CREATED_BY } from "../api/manifest.ts";
import { FieldPath, isNameable } from "../apimachinery/field-path.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import { pointerTo } from "../apimachinery/json-pointer.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { refusal } from "../kube/access-error.ts";
import { isNotFound, isOutdated, isStatus } from "../kube/api-error.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import { getIfExists, type ObjectAccess } from "../kube/get.ts";
import { immutablePaths } from "./immutable.ts";
import { fieldsOf, pathsIn, type Whole } from "./manifest.ts";
import { holds, isEntryOf, isLeaf, otherHolders } from "./ownership.ts";
import { onlyTo } from "./patch.ts";

export interface Adoption {
  operations: readonly JsonPatchOperation[];
  /** What the binding would overwrite or remove; its own marks aside. */
  differing: readonly string[];
}

/** What the object would be with all that the binding wants, as the API server sees it; `stale` if it changed. Throws Problem. */
export async function previewAdoption(
  { client, identity, ref, verbs }: ObjectAccess<"apply">,
  whole: Whole,
  { metadata: { uid, resourceVersion } }: KubeObject,
): Promise<KubeObject | "stale"> {
  const metadata = { ...(whole.object["metadata"] as JsonObject), resourceVersion };
  const options = { fieldManager: whole.maker.fieldManager, force: true, dryRun: true };
  try {
    return await client.apply(identity, ref, uid, { ...whole.object, metadata }, options);
  } catch (error) {
    if (isOutdated(error) || isNotFound(error)) return "stale";
    const refused = immutablePaths(error, pathsIn(whole.object));
    if (refused === undefined) throw refusal(error, { identity, ref, verbs }, "patch");
    const message = `${refused.join(", ")} can't be changed on an object that is there, by the rules of its kind, and Inlay never deletes an object to take it over. Change the binding to what the object has, or delete the object so that the binding makes it`;
    throw new Problem("Conflict", message);
  }
}

/** What makes the object that was previewed of the one that was read. `isGone` tells the owners that don't exist any more. */
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

/** Writes it to the version that was read, and to no other object; `stale` if it changed. Throws Problem. */
export async function adoptObject(
  access: ObjectAccess<"get" | "jsonPatch">,
  live: KubeObject,
  { operations }: Adoption,
  fieldManager: string,
): Promise<KubeObject | "stale"> {
  const { client, identity, ref, verbs } = access;
  const { uid, resourceVersion } = live.metadata;
  const test: JsonPatchOperation = { op: "test", path: "/metadata/uid", value: uid };
  try {
    return await client.jsonPatch(identity, ref, [test, onlyTo(live), ...operations], fieldManager);
  } catch (error) {
    if (isOutdated(error) || isNotFound(error)) return "stale";
    // So it is answered, too, when another object has the name, or lacks what is replaced.
    if (isStatus(error, 422) && (await getIfExists(access))?.metadata.resourceVersion !== resourceVersion)
      return "stale";
    throw refusal(error, { identity, ref, verbs }, "patch");
  }
}

/** The keys of the data of a Secret or ConfigMap that the binding does not write, and that stay. */
export function keysOfOthers(live: KubeObject, { object, maker: { fieldManager } }: Whole): string[] {
  return ["data", "binaryData"].flatMap((field) => {
    const [there, ours] = [live[field], object[field]].map((each) => (isObject(each) ? each : {})) as [
      JsonObject,
      JsonObject,
    ];
    // What the binding alone holds goes with its next write.
    const stays = (path: FieldPath) =>
      !holds(live, fieldManager, path) || otherHolders(live, fieldManager, path).length > 0;
    return Object.keys(there)
      .filter((key) => !Object.hasOwn(ours, key) && (!isNameable(key) || stays(pathOf([field, key]))))
      .map((key) => textOf([field, key]));
  });
}

/**
 * Whose fields are whose once the object is taken over: what the binding applies is its own alone, so that what it drops later goes,
 * as from an object that it made. What a former binding of its name posted is given up.
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

/** Of an element in which others hold something besides, they keep all: nothing is held in one of which the keys are not. */
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

/** The smallest values that differ: an object is compared key by key, a list as one value. */
function* changesBetween(before: unknown, after: unknown, keys: readonly string[] = []): Generator<Change> {
  if (sameJson(before, after)) return;
  if (!isObject(before) || !isObject(after)) {
    yield { keys, before, after };
    return;
  }
  const own = (object: JsonObject, key: string) => (Object.hasOwn(object, key) ? object[key] : undefined);
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)]))
    yield* changesBetween(own(before, key), own(after, key), [...keys, key]);
}

function operationOf({ keys, before, after }: Change): JsonPatchOperation {
  const path = pointerTo(keys);
  if (after === undefined) return { op: "remove", path };
  return { op: before === undefined ? "add" : "replace", path, value: after };
}

/** Of its metadata what a write may change. */
function written({ metadata, ...object }: KubeObject): object {
  const { labels, annotations, ownerReferences, managedFields } = metadata;
  return { ...object, metadata: { labels, annotations, ownerReferences, managedFields } };
}

/** The object without what every adoption changes. */
function unmarked({ metadata, ...object }: KubeObject): object {
  const { [CREATED_BY]: _, ...labels } = metadata.labels ?? {};
  return { ...object, metadata: { labels, annotations: metadata.annotations ?? {} } };
}

const pathOf = (keys: readonly string[]) => new FieldPath(keys.map((key) => ({ kind: "key", key })));

const textOf = (keys: readonly string[]) => (keys.every(isNameable) ? String(pathOf(keys)) : keys.join("."));
