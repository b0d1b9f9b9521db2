/**
 * Releases paths of a target by a JSON Patch, which removes the values or only our name from them. Never by an empty apply: that
 * turns parents that others own into null, or fails.
 */
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { FieldPath, isNameable } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { KubeObject, ObjectRef } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { refusal, WRITE_VERBS } from "../kube/access-error.ts";
import { isNotFound, isStatus } from "../kube/api-error.ts";
import type { Client, JsonPatchOperation } from "../kube/client.ts";
import type { Identity } from "../kube/identity.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { blockedPaths } from "./blocked-paths.ts";
import { ownParts } from "./leaves.ts";
import { byPlace, conditionsOf, type FieldLocation, locate } from "./locate.ts";
import { holds, isEntryOf, otherHolders, restrictedTo } from "./ownership.ts";
import { onlyTo } from "./patch.ts";

export interface Release {
  /** Of the object that the record speaks of; one made anew under its name is not ours. */
  uid: string | undefined;
  paths: readonly string[];
  /** Those of which the record says that they were written, and not only that they would be. */
  written: readonly string[];
  /** Paths that stay ours. */
  kept: readonly string[];
  /** Objects, lists and elements that came to be with the paths. */
  parents: readonly string[];
  mode: "Retain" | "Remove";
  fieldManager: string;
  shape: TargetShape;
  /** Paths whose values stay, because of a rule that the schema does not show. */
  blocked?: readonly string[];
}

export interface Released {
  removed: string[];
  /** Values that stay because the binding says Retain, or because others hold them too. */
  retained: string[];
  /** Values that should have gone and could not, because the object is not valid without them. */
  blocked: string[];
  /** Elements that should have gone, named by their place: they were there before, and the elements after them would shift. */
  positional: string[];
  /** Values that should have gone, at places in lists that were changed by others since: what is there may be another's. */
  shifted: string[];
}

const TRIES = 5;
const BEFORE_FIRST_APPLY = "before-first-apply";
const nothing = (): Released => ({ removed: [], retained: [], blocked: [], positional: [], shifted: [] });

/** Releases, or finds that there is nothing left to release. Throws Problem when it can't be done now. */
export async function release(
  client: Pick<Client, "get" | "jsonPatch">,
  identity: Identity,
  ref: ObjectRef,
  request: Release,
): Promise<Released> {
  let done: Released | undefined;
  try {
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      // A patch that takes a value out of a list owns the list, or the default that replaces the value: our name goes last.
      const outcome = await tryRelease(client, identity, ref, done ? { ...request, paths: [] } : request);
      if (outcome === "stale") continue;
      done ??= outcome.released;
      if (!outcome.again) return done;
    }
    throw new Problem("Unavailable", "the target changes faster than it can be released; it is tried again");
  } catch (error) {
    if (isNotFound(error)) return done ?? nothing();
    throw refusal(error, { identity, ref, verbs: WRITE_VERBS }, "patch");
  }
}

/** What to do about paths. */
interface ReleasePlan {
  operations: JsonPatchOperation[];
  released: Released;
  /** What stays ours, as managedFields have it. */
  kept: FieldPath[];
}

/** Reads and patches; `stale` when the object changed in between. `again`: something of ours is left to give up. */
async function tryRelease(
  client: Pick<Client, "get" | "jsonPatch">,
  identity: Identity,
  ref: ObjectRef,
  request: Release,
): Promise<{ released: Released; again: boolean } | "stale"> {
  const live = await client.get(identity, ref);
  if (live.metadata.uid !== request.uid) return { released: nothing(), again: false };
  const patch = async (how: Release, dryRun = false) => {
    const { operations, released, kept } = planRelease(live, how);
    if (operations.length === 0) return { released, again: false };
    // What the API server puts in the place of a value is owned by the name that removes it, which is given up next.
    const manager = released.removed.length > 0 ? request.fieldManager : CONTROLLER_MANAGER;
    const after = await client.jsonPatch(identity, ref, operations, manager, dryRun);
    return { released, again: giveUp(after, request.fieldManager, kept).length > 0 };
  };
  const isRefused = async (error: unknown) =>
    isStatus(error, 422) &&
    (await client.get(identity, ref)).metadata.resourceVersion === live.metadata.resourceVersion;
  try {
    try {
      return await patch(request);
    } catch (error) {
      // Else what is to be removed is gone. Refused: the object is not valid without it, by a rule that the schema does not show.
      if (request.mode !== "Remove" || !(await isRefused(error))) throw error;
    }
    // It may be the object around the values that has to stay.
    const bare = { ...request, parents: [] };
    if (request.parents.length > 0 && (await isAccepted(patch(bare, true)))) return await patch(bare);
    const { removed } = planRelease(live, request).released;
    const blocked = await blockedPaths(removed, (some) => {
      const others = removed.filter((path) => !some.includes(path));
      return isAccepted(patch({ ...request, blocked: others }, true));
    });
    return await patch({ ...request, blocked });
  } catch (error) {
    if (isStatus(error, 409) || (isStatus(error, 422) && !(await isRefused(error)))) return "stale";
    throw error;
  }
}

async function isAccepted(dryRun: Promise<unknown>): Promise<boolean> {
  try {
    await dryRun;
    return true;
  } catch (error) {
    if (isStatus(error, 422)) return false;
    throw error;
  }
}

/** A JSON Patch that hits only the version that was read, and what it does to each path. Pure. */
export function planRelease(live: KubeObject, request: Release): ReleasePlan {
  const owned = withoutUnknown(live);
  const parts = request.paths.flatMap((text): Part[] => {
    const path = FieldPath.parse(text);
    const place = locateNow(path, request.shape, live);
    if (place === "untold") return request.mode === "Remove" ? [{ path, at: path, fate: "shifted" }] : [];
    if (place === undefined || path.get(live) === undefined) return [];
    return fatesOf(owned, request, path, place).map(([fate, at]) => ({ path, at, fate }));
  });
  const removal = removeWhatMay(owned, parts, request);
  const released = nothing();
  for (const { path, fate } of parts) {
    const paths = released[fate];
    if (paths.at(-1) !== String(path)) paths.push(String(path));
  }
  const kept = request.kept.flatMap((text) => {
    const place = locateNow(FieldPath.parse(text), request.shape, live);
    return typeof place === "object" ? [place.held] : [];
  });
  const operations: JsonPatchOperation[] = [
    // Of what is removed too: where there is no schema, the API server leaves our name on the object around it.
    ...giveUp(live, request.fieldManager, kept),
    ...removal,
  ];
  return {
    operations: operations.length === 0 ? [] : [onlyTo(live), ...operations],
    released,
    kept,
  };
}

/** The API server gives all that was there before the first apply to a field manager that does not exist. */
function withoutUnknown(live: KubeObject): KubeObject {
  const managedFields = (live.metadata.managedFields ?? []).filter(({ manager }) => manager !== BEFORE_FIRST_APPLY);
  return { ...live, metadata: { ...live.metadata, managedFields } };
}

/** A value that stands there, or a part of it. */
interface Part {
  path: FieldPath;
  /** Where it is now, by places only. */
  at: FieldPath;
  fate: keyof Released;
}

/**
 * A required field without a default stays and is blocked, unless the object around it goes too: that is known once all is
 * planned.
 */
function removeWhatMay(live: KubeObject, parts: readonly Part[], request: Release): JsonPatchOperation[] {
  const { blocked = [], shape } = request;
  const isRequired = (at: FieldPath) => shape.isRequired(at) && shape.defaultAt(at) === undefined;
  for (;;) {
    const removed = parts.filter(({ fate }) => fate === "removed");
    const { operations, dropped } = remove(live, removed, request);
    const isBlocked = ({ path, at }: Part) =>
      blocked.includes(String(path)) || (isRequired(at) && !dropped.some((parent) => path.startsWith(parent)));
    const stuck = removed.filter(isBlocked);
    if (stuck.length === 0) return operations;
    for (const part of stuck) part.fate = "blocked";
  }
}

/** `untold` where several elements fit now; undefined where the object has become another than the path was made for. */
function locateNow(path: FieldPath, shape: TargetShape, live: KubeObject): FieldLocation | "untold" | undefined {
  const place = attemptSync(() => locate(path, shape, live));
  if (!(place instanceof Problem)) return place;
  return place.reason === "ElementNotUnique" ? "untold" : undefined;
}

/** What becomes of a value that stands there, or of its parts; nothing if it is not ours any more. */
function fatesOf(
  live: KubeObject,
  { mode, fieldManager, written }: Release,
  path: FieldPath,
  place: FieldLocation,
): (readonly [keyof Released, FieldPath])[] {
  // No element is appended by its place, so this one was there before the binding wrote it.
  if (mode === "Remove" && path.segments.at(-1)?.kind === "index") return [["positional", place.at]];
  const isHeld = holds(live, fieldManager, place.held);
  // Within a list that is one value, the record alone says what is ours.
  if (!isHeld && !place.within) {
    if (mode === "Retain") return [];
    if (isNumbered(path)) return [["shifted", place.at]];
    // What another manager took over, it holds. What was written and has no manager is ours: managedFields was cleared.
    const isForgotten = written.includes(String(path)) && otherHolders(live, fieldManager, place.held).length === 0;
    return isForgotten ? [["removed", place.at]] : [];
  }
  if (mode === "Retain") return [["retained", place.at]];
  if (!isHeld && isNumbered(path)) return [["shifted", place.at]];
  const parts = place.within ? [{ at: place.at, isShared: false }] : ownParts(live, fieldManager, place);
  return parts.map(({ at, isShared }) => [isShared ? "retained" : "removed", at]);
}

const isNumbered = (path: FieldPath) => path.segments.some(({ kind }) => kind === "index");

/** Takes all but some paths out of our entries in managedFields; their values stay. */
function giveUp(live: KubeObject, manager: string, kept: readonly FieldPath[]): JsonPatchOperation[] {
  const entries = live.metadata.managedFields ?? [];
  const operations = entries.flatMap((entry, index): JsonPatchOperation[] => {
    if (!isEntryOf(entry, manager)) return [];
    const left = restrictedTo(entry.fieldsV1 ?? {}, kept);
    if (sameJson(left, entry.fieldsV1)) return [];
    const path = `/metadata/managedFields/${index}`;
    return [left === undefined ? { op: "remove", path } : { op: "replace", path: `${path}/fieldsV1`, value: left }];
  });
  // From the last, so that each is still where it was.
  return operations.reverse();
}

/** Removes the values, then what came to be with them and is left empty, the deepest first. */
function remove(
  live: KubeObject,
  removed: readonly Part[],
  { parents, fieldManager, shape }: Release,
): { operations: JsonPatchOperation[]; dropped: FieldPath[] } {
  const after = structuredClone(live);
  const operations: JsonPatchOperation[] = [];
  const dropped: FieldPath[] = [];
  const drop = (at: FieldPath) => {
    dropIn(after, at);
    operations.push({ op: "remove", path: at.toJsonPointer() });
  };
  for (const { at } of removed.toSorted((a, b) => byPlace(b.at, a.at))) drop(at);
  const deepestFirst = parents
    .map((text) => FieldPath.parse(text))
    .filter((parent) => removed.some(({ path }) => path.startsWith(parent)))
    .sort((a, b) => b.segments.length - a.segments.length);
  for (const path of deepestFirst) {
    const [before, place] = [locateNow(path, shape, live), locateNow(path, shape, after)];
    if (typeof before !== "object" || typeof place !== "object" || place.missing) continue;
    // Others who hold an object want it by itself. In a list that is one value, nobody holds an element.
    const isElement = before.within && !before.held.equals(path);
    if (!isElement && otherHolders(live, fieldManager, before.held).length > 0) continue;
    if (!isEmpty(path.get(after), path, place, shape)) continue;
    drop(place.at);
    dropped.push(path);
  }
  return { operations, dropped };
}

/** Nothing is in it but defaults, and in an element what names it. */
function isEmpty(value: unknown, path: FieldPath, { keys, at }: FieldLocation, shape: TargetShape): boolean {
  if (value === null || typeof value !== "object") return false;
  if (Array.isArray(value)) return value.length === 0;
  const conditions = conditionsOf(path.segments.at(-1)).map(({ key }) => key);
  const names = [...conditions, ...(conditions.length > 0 ? Object.keys(keys.at(-1) ?? {}) : [])];
  return Object.entries(value).every(
    ([key, child]) =>
      names.includes(key) || (isNameable(key) && sameJson(child, shape.defaultAt(at.with({ kind: "key", key })))),
  );
}

function dropIn(object: KubeObject, at: FieldPath): void {
  const parent = at.upTo(at.segments.length - 1).get(object);
  const last = at.segments.at(-1);
  if (last?.kind === "index") (parent as unknown[]).splice(last.index, 1);
  if (last?.kind === "key") delete (parent as Record<string, unknown>)[last.key];
}
