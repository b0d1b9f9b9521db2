/**
 * The record of what is ours in one target comes in, with the paths to give up; one JSON Patch goes to the API server,
 * which takes the values out again or only our name off them. Never by an empty apply: that turns parents that others
 * own into null, or fails.
 */
import { isStatus } from "../kube/api-error.ts";
import type { Client, JsonPatchOperation } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import { refusal, WRITE_VERBS } from "../kube/refusal.ts";
import { CONTROLLER_MANAGER } from "../model/field-manager.ts";
import { FieldPath } from "../model/field-path.ts";
import type { JsonObject, KubeObject, ObjectRef } from "../model/kube-object.ts";
import { Problem } from "../model/problem.ts";
import { ownParts } from "./leaves.ts";
import { holds, isEntryOf, otherHolders, withoutPaths } from "./ownership.ts";

export interface Release {
  /** Of the object that the record speaks of; one made anew under its name is not ours. */
  uid: string | undefined;
  paths: readonly string[];
  /** Objects that came to be with the paths. */
  parents: readonly string[];
  mode: "Retain" | "Remove";
  fieldManager: string;
  /** Whether the schema demands that field of its parent; such a leaf stays. */
  isRequired: (path: FieldPath) => boolean;
}

export interface Released {
  removed: string[];
  /** Values that stay because the binding says Retain, or because others hold them too. */
  retained: string[];
  /** Values that should have gone and could not, because the field is required. */
  blocked: string[];
}

const TRIES = 5;

/** Releases, or finds that there is nothing left to release. Throws Problem when it can't be done now. */
export async function release(client: Client, identity: Identity, ref: ObjectRef, request: Release): Promise<Released> {
  try {
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      const outcome = await tryRelease(client, identity, ref, request);
      if (outcome !== "stale") return outcome;
    }
    throw new Problem("Unavailable", "the target changes faster than it can be released; it is tried again");
  } catch (error) {
    if (isStatus(error, 404) && error.reason === "NotFound") return { removed: [], retained: [], blocked: [] };
    throw refusal(error, { identity, ref, verbs: WRITE_VERBS }, "patch");
  }
}

/** Reads and patches once; `stale` when the object changed in between. */
async function tryRelease(
  client: Client,
  identity: Identity,
  ref: ObjectRef,
  request: Release,
): Promise<Released | "stale"> {
  const live = await client.get(identity, ref);
  if (live.metadata.uid !== request.uid) return { removed: [], retained: [], blocked: [] };
  const patch = async (how: Release): Promise<Released> => {
    const { operations, released } = planRelease(live, how);
    if (operations.length > 0) await client.jsonPatch(identity, ref, operations, CONTROLLER_MANAGER);
    return released;
  };
  try {
    return await patch(request);
  } catch (error) {
    if (isStatus(error, 409)) return "stale";
    if (!isStatus(error, 422)) throw error;
    // What is to be removed is gone, or the object is not valid without it by a rule that the schema does not show.
    if ((await client.get(identity, ref)).metadata.resourceVersion !== live.metadata.resourceVersion) return "stale";
    if (request.mode !== "Remove") throw error;
    return await patch({ ...request, isRequired: () => true });
  }
}

/** A JSON Patch that hits only the version that was read, and what it does to each path. Pure. */
export function planRelease(
  live: KubeObject,
  request: Release,
): { operations: JsonPatchOperation[]; released: Released } {
  const entries = live.metadata.managedFields ?? [];
  const released: Released = { removed: [], retained: [], blocked: [] };
  const removed: FieldPath[] = [];
  const givenUp: FieldPath[] = [];
  for (const text of request.paths) {
    const path = FieldPath.parse(text);
    if (!holds(entries, request.fieldManager, path)) continue;
    const become = new Set<"removed" | "retained" | "blocked">();
    for (const part of request.mode === "Remove" ? ownParts(live, request.fieldManager, path) : [path]) {
      const mayGo = request.mode === "Remove" && otherHolders(live, request.fieldManager, part).length === 0;
      const goes = mayGo && !request.isRequired(part) && part.get(live) !== undefined;
      (goes ? removed : givenUp).push(part);
      become.add(goes ? "removed" : mayGo ? "blocked" : "retained");
    }
    for (const what of become) released[what].push(text);
  }
  const operations: JsonPatchOperation[] = [
    // Of what is removed too: where there is no schema, the API server leaves our name on the object around it.
    ...giveUp(live, request.fieldManager, [...givenUp, ...removed]),
    ...remove(live, removed, ownParents(live, request)),
  ];
  return { operations: operations.length === 0 ? [] : [onlyTo(live), ...operations], released };
}

/** Lets a JSON Patch hit the version that was read, and no other. */
export function onlyTo({ metadata }: KubeObject): JsonPatchOperation {
  return { op: "replace", path: "/metadata/resourceVersion", value: metadata.resourceVersion };
}

/** Takes the paths out of our entry in managedFields; their values stay. */
export function giveUp(live: KubeObject, manager: string, paths: readonly FieldPath[]): JsonPatchOperation[] {
  const entries = live.metadata.managedFields ?? [];
  const index = entries.findIndex((entry) => isEntryOf(entry, manager));
  if (paths.length === 0 || index < 0) return [];
  const left = withoutPaths(entries[index]?.fieldsV1 ?? {}, paths);
  const path = `/metadata/managedFields/${index}`;
  return [left === undefined ? { op: "remove", path } : { op: "replace", path: `${path}/fieldsV1`, value: left }];
}

/** The objects that came to be with our paths, but those that somebody wants by themselves since. */
function ownParents(live: KubeObject, { parents, fieldManager }: Release): FieldPath[] {
  return parents
    .map((text) => FieldPath.parse(text))
    .filter((parent) => otherHolders(live, fieldManager, parent).length === 0);
}

/** Removes the leaves, then those of the parents, deepest first, that are left empty. */
function remove(live: KubeObject, leaves: readonly FieldPath[], parents: readonly FieldPath[]): JsonPatchOperation[] {
  const after = structuredClone(live);
  const deepestFirst = [...parents]
    .sort((a, b) => b.segments.length - a.segments.length)
    .filter((parent) => leaves.some((leaf) => leaf.startsWith(parent)));
  const operations: JsonPatchOperation[] = [];
  for (const path of [...leaves, ...deepestFirst]) {
    const value = path.get(after);
    const isLeaf = operations.length < leaves.length;
    if (!isLeaf && !(value !== null && typeof value === "object" && Object.keys(value).length === 0)) continue;
    drop(after, path);
    operations.push({ op: "remove", path: path.toJsonPointer() });
  }
  return operations;
}

function drop(object: KubeObject, path: FieldPath): void {
  const parent = (path.parent === undefined ? object : path.parent.get(object)) as JsonObject;
  const last = path.segments.at(-1);
  if (last?.kind === "key") delete parent[last.key];
}
