/**
 * Releases paths of a target by a JSON Patch that removes the values, or only the ownership. An empty apply is no
 * alternative: it sets parents of other owners to null, or fails.
 */
import jsonPatch from "fast-json-patch";
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { FieldPath, isNameable, settled } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import { refusal } from "../kube/access-error.ts";
import { type ApiError, isNotFound, isStatus } from "../kube/api-error.ts";
import type { JsonPatchOperation } from "../kube/client.ts";
import type { ObjectAccess } from "../kube/get.ts";
import type { Denial } from "../kube/server-text.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { ownParts } from "./leaves.ts";
import { byPlace, conditionsOf, type FieldLocation, locate } from "./locate.ts";
import { holds, isEntryOf, otherHolders, restrictedTo } from "./ownership.ts";
import { onlyTo } from "./patch.ts";

/** A target has up to 64 fields. To find one required field among them takes a dozen dry runs. */
const MAX_DRY_RUNS = 256;

/**
 * Finds by dry runs which paths an object requires: the API server does not say which of several it refuses to remove.
 * The paths to keep so that as many others as possible can be removed together. `canGo` says whether the API server
 * would accept the removal of exactly these paths. If one of several must stay, the last one stays. After 256 dry runs,
 * all paths stay that are not accepted yet. Throws what `canGo` throws.
 */
export async function blockedPaths(
  paths: readonly string[],
  canGo: (some: readonly string[]) => Promise<boolean>,
): Promise<string[]> {
  let dryRuns = 0;
  let gone: readonly string[] = [];
  const accepts = async (some: readonly string[]) => dryRuns++ < MAX_DRY_RUNS && (await canGo([...gone, ...some]));
  /** Returns the paths of `some` that stay. */
  const take = async (some: readonly string[]): Promise<readonly string[]> => {
    if (await accepts(some)) {
      gone = [...gone, ...some];
      return [];
    }
    return some.length === 1 ? some : takeHalves(some);
  };
  const takeHalves = async (some: readonly string[]) => {
    const middle = Math.ceil(some.length / 2);
    return [...(await take(some.slice(0, middle))), ...(await take(some.slice(middle)))];
  };
  // A single path is already known to be refused. If not even an unchanged object is accepted, dry runs show nothing.
  if (paths.length === 1 || !(await accepts([]))) return [...paths];
  let left = await takeHalves(paths);
  // The removal of others may permit the removal of a path that was refused before.
  for (let before = paths.length; left.length > 0 && left.length < before; ) {
    before = left.length;
    left = (await take(left.toReversed())).toReversed();
  }
  return [...left];
}

export interface Release {
  /** The object of the record. The binding does not own a new object of that name. */
  uid: string | undefined;
  paths: readonly string[];
  /** The paths that the record lists as written, not only as about to be written. */
  written: readonly string[];
  /** The paths whose first write left the value from before. */
  reverted: readonly string[];
  /** The paths that the binding keeps. */
  kept: readonly string[];
  /** Objects, lists and elements that were created with the paths. */
  parents: readonly string[];
  mode: "Retain" | "Remove";
  fieldManager: string;
  shape: TargetShape;
  /** Paths whose values must stay, because of a rule that is not in the schema. */
  blocked?: readonly string[];
  /** The policy or webhook with that rule. */
  denial?: Denial | undefined;
}

export interface Released {
  removed: string[];
  /** Values that stay because of onRelease: Retain. */
  retained: string[];
  /** Values that stay although they should be removed, because others own them too, as the answer of the last request shows. */
  shared: Shared[];
  /** Values that can't be removed because the object is invalid without them. */
  blocked: string[];
  /** Elements that stay because the path names their index: they existed before, and later ones would shift. */
  positional: string[];
  /**
   * Values that stay because another element may be at the index now: others changed the list, or an element has the
   * same keys.
   */
  shifted: string[];
  /** Values that stay because a write of others in the same list or object hides whether their own write took place. */
  unproven: string[];
  /** Values that a policy or webhook does not allow to be removed. */
  denied: string[];
  /** Values that the API server kept although it accepted their removal. */
  restored: string[];
  /** What denied the removal of `denied`. */
  denial?: Denial | undefined;
}

/** A value that other field managers own too. */
export interface Shared {
  path: string;
  managers: string[];
  /** For a JSON Patch; undefined if its place can change. */
  pointer?: string;
}

type Fate = Exclude<keyof Released, "denial">;

const TRIES = 5;
const BEFORE_FIRST_APPLY = "before-first-apply";
const nothing = (): Released => ({
  removed: [],
  retained: [],
  shared: [],
  blocked: [],
  positional: [],
  shifted: [],
  unproven: [],
  denied: [],
  restored: [],
});

/** Releases the paths, if anything is left to release. Throws Problem if that is not possible now. */
export async function release(access: ObjectAccess<"get" | "jsonPatch">, request: Release): Promise<Released> {
  let done: Released | undefined;
  try {
    for (let attempt = 1; attempt <= TRIES; attempt++) {
      // The patch that removes a value owns its list, or the default in its place. So ownership is released last.
      const outcome = await tryRelease(access, done ? { ...request, paths: [] } : request);
      if (outcome === "stale") continue;
      done ??= outcome.released;
      if (!outcome.again) return done;
    }
    throw new Problem("Unavailable", "the target changes faster than it can be released; Inlay retries");
  } catch (error) {
    if (isNotFound(error)) return done ?? nothing();
    const { identity, ref, verbs } = access;
    throw refusal(error, { identity, ref, verbs }, "patch");
  }
}

/** The changes for a release, and the outcome for each path. */
interface ReleasePlan {
  operations: JsonPatchOperation[];
  released: Released;
  /** The paths that the binding keeps, as in managedFields. */
  kept: FieldPath[];
  /** The operations that remove values and parents, without those that drop the ownership. */
  removal: JsonPatchOperation[];
  /** The values that it removes. */
  gone: readonly Pick<Part, "path" | "at">[];
  /** The values that stay because others own them too. */
  shared: readonly Pick<Part, "path" | "at" | "held">[];
}

/** Reads and patches; `stale` if the object changed in between. `again`: there is more to release. */
async function tryRelease(
  { client, identity, ref }: ObjectAccess<"get" | "jsonPatch">,
  request: Release,
): Promise<{ released: Released; again: boolean } | "stale"> {
  const live = await client.get(identity, ref);
  if (live.metadata.uid !== request.uid) return { released: nothing(), again: false };
  const patch = async (how: Release, dryRun = false) => {
    const plan = planRelease(live, how);
    const { operations, kept } = plan;
    const removes = plan.removal.length > 0;
    if (operations.length === 0) return { released: plan.released, again: false };
    // The manager that removes a value owns the default that replaces it, and gives it up next.
    const manager = removes ? request.fieldManager : CONTROLLER_MANAGER;
    const answer = removes && !dryRun ? "whole" : "metadata";
    const after = await client.jsonPatch(identity, ref, operations, manager, dryRun, answer);
    const released = asStored(plan, live, after, request);
    return { released, again: dropOwnership(after, request.fieldManager, kept).length > 0 };
  };
  const isRefused = async (error: unknown) =>
    isStatus(error, 422) &&
    (await client.get(identity, ref)).metadata.resourceVersion === live.metadata.resourceVersion;
  try {
    let denial: Denial | undefined;
    try {
      return await patch(request);
    } catch (error) {
      // A 422 for an unchanged object: it is invalid without the values, by a rule beyond the schema.
      if (request.mode !== "Remove" || !(await isRefused(error))) throw error;
      denial = (error as ApiError).denial;
    }
    // Perhaps only the removal of a parent is refused.
    const bare = { ...request, parents: [] };
    if (request.parents.length > 0 && (await isAccepted(patch(bare, true)))) return await patch(bare);
    const { removed } = planRelease(live, request).released;
    const blocked = await blockedPaths(removed, (some) => {
      const others = removed.filter((path) => !some.includes(path));
      return isAccepted(patch({ ...request, blocked: others }, true));
    });
    return await patch({ ...request, blocked, denial });
  } catch (error) {
    if (isStatus(error, 409) || (isStatus(error, 422) && !(await isRefused(error)))) return "stale";
    throw error;
  }
}

/** The outcome, by what the API server stored: admission may put a value back. A default may have the same value. */
function asStored(
  { released, gone, shared }: ReleasePlan,
  live: KubeObject,
  after: KubeObject,
  { shape, fieldManager }: Release,
): Released {
  const isStill = ({ path, at }: Pick<Part, "path" | "at">) => {
    // By the conditions of the path: the removal of an element moves others.
    const stored = attemptSync(() => path.with(...at.segments.slice(path.segments.length)).get(after));
    return stored !== undefined && sameJson(stored, at.get(live)) && !sameJson(stored, shape.defaultAt(at));
  };
  const restored = [...new Set(gone.filter(isStill).map(({ path }) => String(path)))];
  const removed = released.removed.filter((path) => !restored.includes(path));
  return { ...released, removed, restored, shared: ownersOf(shared, after, fieldManager) };
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

/** A JSON Patch for the version that was read, and the outcome for each path. `live` must not change afterwards. Pure. */
export function planRelease(live: KubeObject, request: Release): ReleasePlan {
  const owned = settled(withoutUnknown(settled(live)));
  const gone: FieldPath[] = [];
  const parts = request.paths.flatMap((text): Part[] => {
    const path = FieldPath.parse(text);
    const place = locateNow(path, request.shape, live);
    if (place === "ambiguous")
      return request.mode === "Remove" ? [{ path, at: path, fate: "shifted", held: path }] : [];
    if (place === undefined) return [];
    if (path.get(live) === undefined) {
      if (request.mode === "Remove") gone.push(path);
      return [];
    }
    return outcomesOf(owned, request, path, place).map(([fate, at]) => ({ path, at, fate, held: place.held }));
  });
  const removal = removeWhatMay(owned, parts, gone, request);
  const shared = parts.filter(({ fate }) => fate === "shared");
  const released = {
    ...nothing(),
    ...(request.denial && { denial: request.denial }),
    shared: ownersOf(shared, live, request.fieldManager),
  };
  for (const { path, fate } of parts) {
    if (fate === "shared") continue;
    const paths = released[fate];
    if (paths.at(-1) !== String(path)) paths.push(String(path));
  }
  const kept = request.kept.flatMap((text) => {
    const place = locateNow(FieldPath.parse(text), request.shape, live);
    return typeof place === "object" ? [place.held] : [];
  });
  const operations: JsonPatchOperation[] = [
    // Includes the removed paths: without a schema, the API server keeps the ownership of their parent.
    ...dropOwnership(live, request.fieldManager, kept),
    ...removal,
  ];
  return {
    operations: operations.length === 0 ? [] : [onlyTo(live), ...operations],
    released,
    kept,
    removal,
    gone: parts.filter(({ fate }) => fate === "removed"),
    shared,
  };
}

/** Each shared value, or shared part of a value, with its other owners. */
function ownersOf(parts: ReleasePlan["shared"], object: KubeObject, manager: string): Shared[] {
  const known = withoutUnknown(object);
  const shared = parts.map(({ path, at, held }): [string, Shared] => {
    const below = at.segments.slice(path.segments.length);
    const part = path.with(...below);
    // The indexes of elements are no names in managedFields, so the owners of the whole value count.
    const isInList = below.some(({ kind }) => kind !== "key");
    const managers = [...new Set(otherHolders(known, manager, isInList ? held : held.with(...below)))];
    return [`${part}`, { path: `${part}`, managers, ...(part.isPlain && { pointer: part.toJsonPointer() }) }];
  });
  return [...new Map(shared).values()];
}

/** The API server assigns fields from before the first apply to a field manager that does not exist. */
function withoutUnknown(live: KubeObject): KubeObject {
  const managedFields = (live.metadata.managedFields ?? []).filter(({ manager }) => manager !== BEFORE_FIRST_APPLY);
  return { ...live, metadata: { ...live.metadata, managedFields } };
}

/** An existing value, or a part of one. */
interface Part {
  path: FieldPath;
  /** Its current location, by indexes. */
  at: FieldPath;
  /** The path as in managedFields. */
  held: FieldPath;
  fate: Fate;
}

/**
 * A required field without a default stays and is blocked, unless its parent is removed too. That is known only when
 * everything is planned.
 */
function removeWhatMay(
  live: KubeObject,
  parts: readonly Part[],
  gone: readonly FieldPath[],
  request: Release,
): JsonPatchOperation[] {
  const { blocked = [], shape } = request;
  const isRequired = (at: FieldPath) => shape.isRequired(at) && shape.defaultAt(at) === undefined;
  for (;;) {
    const removed = parts.filter(({ fate }) => fate === "removed");
    const { operations, dropped } = remove(live, removed, gone, request);
    const isBlocked = ({ path, at }: Part) =>
      blocked.includes(String(path)) || (isRequired(at) && !dropped.some((parent) => path.startsWith(parent)));
    const stuck = removed.filter(isBlocked);
    if (stuck.length === 0) return operations;
    for (const part of stuck)
      part.fate = request.denial !== undefined && blocked.includes(String(part.path)) ? "denied" : "blocked";
  }
}

/** `ambiguous` if several elements match; undefined if the path no longer fits the object. */
function locateNow(path: FieldPath, shape: TargetShape, live: KubeObject): FieldLocation | "ambiguous" | undefined {
  const place = attemptSync(() => locate(path, shape, live));
  if (!(place instanceof Problem)) return place;
  return place.reason === "ElementNotUnique" ? "ambiguous" : undefined;
}

/** The outcome for a value or its parts; none if the binding no longer owns it. */
function outcomesOf(
  live: KubeObject,
  request: Release,
  path: FieldPath,
  place: FieldLocation,
): (readonly [Fate, FieldPath])[] {
  const { mode, fieldManager, written, reverted } = request;
  const isHeld = holds(live, fieldManager, place.held);
  const isWritten = written.includes(String(path));
  // A write that admission undid owns the value from before.
  if (!isWritten && reverted.includes(String(path))) return isHeld ? [["retained", place.at]] : [];
  // Inlay appends no element by index, so this one existed before.
  if (mode === "Remove" && path.segments.at(-1)?.kind === "index") return [["positional", place.at]];
  // In a list or an object that is one value, the record says what the binding wrote. If it only announced the write, the
  // ownership of the whole shows whether that took place, unless another write explains it.
  if (!isWritten && place.within) {
    if (!isHeld) return [];
    if (written.some((other) => isHeldAt(other, place.held, request, live)))
      return [[mode === "Remove" ? "unproven" : "retained", place.at]];
  }
  if (!isHeld && !place.within) {
    if (mode === "Retain") return [];
    if (isNumbered(path)) return [["shifted", place.at]];
    // A written field without any owner is still the binding's: managedFields was cleared.
    const isForgotten = isWritten && otherHolders(live, fieldManager, place.held).length === 0;
    return isForgotten ? [["removed", place.at]] : [];
  }
  if (mode === "Retain") return [["retained", place.at]];
  // Among elements with equal keys, managedFields don't show which one the binding wrote.
  const isIndistinct = place.duplicate !== undefined && path.segments[place.duplicate]?.kind === "index";
  if (isIndistinct || (!isHeld && isNumbered(path))) return [["shifted", place.at]];
  const parts = place.within ? [{ at: place.at, isShared: false }] : ownParts(live, fieldManager, place);
  return parts.map(({ at, isShared }) => [isShared ? "shared" : "removed", at]);
}

/** Whether a path of the binding lies in the same list or object that is one value. */
function isHeldAt(path: string, held: FieldPath, { shape }: Release, live: KubeObject): boolean {
  const place = locateNow(FieldPath.parse(path), shape, live);
  return typeof place === "object" && place.held.equals(held);
}

const isNumbered = (path: FieldPath) => path.segments.some(({ kind }) => kind === "index");

/** Removes all but some paths from the binding's entries in managedFields. The values stay. */
function dropOwnership(live: KubeObject, manager: string, kept: readonly FieldPath[]): JsonPatchOperation[] {
  const entries = live.metadata.managedFields ?? [];
  const operations = entries.flatMap((entry, index): JsonPatchOperation[] => {
    if (!isEntryOf(entry, manager)) return [];
    const left = restrictedTo(entry.fieldsV1 ?? {}, kept);
    if (sameJson(left, entry.fieldsV1)) return [];
    const path = `/metadata/managedFields/${index}`;
    return [left === undefined ? { op: "remove", path } : { op: "replace", path: `${path}/fieldsV1`, value: left }];
  });
  // From the last, so that the indexes stay valid.
  return operations.reverse();
}

/**
 * Removes the values, then parents that were created with them and are empty now, the deepest first. `gone` are the
 * paths whose values another client has removed.
 */
function remove(
  live: KubeObject,
  removed: readonly Part[],
  gone: readonly FieldPath[],
  { parents, fieldManager, shape }: Release,
): { operations: JsonPatchOperation[]; dropped: FieldPath[] } {
  const after = structuredClone(live);
  const operations: JsonPatchOperation[] = [];
  const dropped: FieldPath[] = [];
  const drop = (at: FieldPath) => {
    const operation = { op: "remove" as const, path: at.toJsonPointer() };
    jsonPatch.applyOperation(after, operation);
    operations.push(operation);
  };
  for (const { at } of removed.toSorted((a, b) => byPlace(b.at, a.at))) drop(at);
  const isRemovedBelow = (parent: FieldPath) => removed.some(({ path }) => path.startsWith(parent));
  const deepestFirst = parents
    .map((text) => FieldPath.parse(text))
    .filter((parent) => isRemovedBelow(parent) || gone.some((path) => path.startsWith(parent)))
    .sort((a, b) => b.segments.length - a.segments.length);
  for (const path of deepestFirst) {
    const [before, place] = [locateNow(path, shape, live), locateNow(path, shape, after)];
    if (typeof before !== "object" || typeof place !== "object" || place.missing) continue;
    // Other owners of an object want the object itself. In a list or an object that is one value, parts have no owners.
    const isWithin = before.within && !before.held.equals(path);
    const isOthers = isWithin
      ? !isRemovedBelow(path) && !holds(live, fieldManager, before.held)
      : otherHolders(live, fieldManager, before.held).length > 0;
    if (isOthers) continue;
    if (!isEmpty(path.get(after), path, place, shape)) continue;
    drop(place.at);
    dropped.push(path);
  }
  return { operations, dropped };
}

/** Whether a value contains only defaults, and in an element its keys. */
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
