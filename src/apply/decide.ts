/** Decides whether to write to a target, and how, from the plan, the target and the record of what is ours. Pure. */
import type { TargetStatus } from "../api/binding.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import type { JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { Plan, PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { otherHoldersOf } from "./leaves.ts";
import { conditionsOf, type FieldLocation, locate } from "./locate.ts";
import { mergedAt } from "./merge.ts";
import { heldPart, holds, isOfOtherVersion, otherAppliers, otherHolders, strays } from "./ownership.ts";

export interface Desired {
  plan: Plan;
  shape: TargetShape;
  fieldManager: string;
  onConflict: "Fail" | "Force";
}

/** A value and where it stands, or is to stand. */
export interface Located {
  path: FieldPath;
  place: FieldLocation;
  value: SecretValue<JsonValue>;
}

export interface Decision {
  write: boolean;
  /** `patch`: by one JSON Patch, since a path goes into a list that is applied as a whole or not at all. */
  way: "apply" | "patch";
  fields: Located[];
  /** Take the fields from whoever holds them: because the binding says so, or because they are ours by record. */
  force: boolean;
  /** Paths that are written for the first time. */
  acquires: string[];
  /** Objects, lists and elements that will come to be on the way to those paths. */
  parents: string[];
  /** Fields of ours that are not written now and stay: an apply repeats what is there, since it removes what it leaves out. */
  carried: Located[];
  /** All that the binding names, as managedFields have it. What else our name holds is given up before an apply would remove it. */
  keeps: FieldPath[];
  /** Managers who hold a path of ours that differs now. */
  takenBy: string[];
  /** Paths whose value is not what it should be. */
  differing: string[];
  /** What will be in somebody's way who does not know of it. */
  warnings: string[];
}

/** The paths of a record, when it speaks of this very object and not of one of the same name before it. */
export function recordedPaths(record: TargetStatus | undefined, live: KubeObject): string[] {
  return record?.uid === live.metadata.uid ? (record.paths ?? []) : [];
}

/** The fields of the binding that are not written now, and stay as they are. */
export function waitingIn({ plan: { leftOut, kept = [] } }: Desired): FieldPath[] {
  return [...leftOut.flatMap(({ path, why }) => (why.policy.onMissing === "Wait" ? [path] : [])), ...kept];
}

/**
 * Throws Problem: Conflict when a field not ours yet is another's, and the binding does not say to take it; ElementNotFound,
 * and what `locate` throws; InvalidBinding when two paths lead to one place.
 */
export function decide(desired: Desired, live: KubeObject, record: TargetStatus | undefined): Decision {
  const { shape, fieldManager: manager } = desired;
  const recorded = new Set(recordedPaths(record, live));
  const wanted = desired.plan.fields.map((field) => locateField(field, shape, live));
  assertApart(wanted);
  const waiting = waitingIn(desired)
    .map((path) => ({ path, place: locate(path, shape, live) }))
    .filter(({ place }) => place.missing === undefined);
  const way = [...wanted, ...waiting].some(({ place }) => place.within) ? "patch" : "apply";
  const keeps = [...wanted, ...waiting].map(({ place }) => place.held);
  // A patch replaces all that stands at a place, so it says what others hold there again.
  const put = (field: Located): Located =>
    way === "apply"
      ? field
      : { ...field, value: field.value.map((value) => mergedAt(field.place, value, live, manager, shape)) };
  const differing = wanted.filter((field) => !stands(put(field), live, manager, field.place));
  const acquired = wanted.filter(({ path }) => !recorded.has(String(path)));

  const holdersOf = ({ place, value }: Located) =>
    place.within
      ? otherHolders(live, manager, place.held)
      : otherHoldersOf(live, manager, place.held, value.reveal(), shape);
  const contested = differing.flatMap((field) =>
    // Who made a list holds all of it: to name an element of it in a binding is the consent.
    recorded.has(String(field.path)) || field.place.within
      ? []
      : holdersOf(field).map((other) => ({ path: String(field.path), manager: other })),
  );
  if (contested.length > 0 && desired.onConflict === "Fail") throw conflict(contested);
  const alsoApplied = ({ place: { within, held } }: Located) =>
    (within ? otherAppliers(live, manager, held) : []).map(
      (other) =>
        `${held} is one value to the API server, and ${other} applies it: take it out of there, or it will conflict`,
    );
  const isOwned = wanted.every(({ place }) => holds(live, manager, place.held)) && !isOfOtherVersion(live, manager);
  return {
    write: differing.length > 0 || (way === "apply" && (!isOwned || strays(live, manager, keeps))),
    way,
    fields: wanted.map(put),
    force: desired.onConflict === "Force" || acquired.length < wanted.length,
    acquires: acquired.map(({ path }) => String(path)),
    parents: missingParents(acquired, live),
    carried: waiting.flatMap(({ path, place }) => {
      if (way === "patch") return [];
      const value = heldPart(live, manager, place.held);
      return value === undefined ? [] : [{ path, place, value: new SecretValue(value) }];
    }),
    keeps,
    takenBy: [...new Set(differing.flatMap(holdersOf))],
    differing: differing.map(({ path }) => String(path)),
    warnings: [...new Set(acquired.flatMap(alsoApplied))],
  };
}

/** Where a field stands, or is to be appended, and what it is to be. */
export function locateField({ path, value, append = false }: PlannedField, shape: TargetShape, live: unknown): Located {
  const place = locate(path, shape, live);
  if (place.missing !== undefined && !append) throw place.missing;
  if (place.untold !== undefined) throw place.untold;
  const conditions = conditionsOf(path.segments.at(-1));
  if (conditions.length === 0) return { path, place, value };
  // An element as a whole is still the one that the path names.
  const list = path.upTo(path.segments.length - 1);
  const told = place.within ? shape.elementOf(list, conditions) : (place.keys.at(-1) ?? {});
  const element = value.map((given) => {
    if (isObject(given) && Object.entries(told).every(([key, own]) => sameJson(given[key] ?? own, own)))
      return { ...told, ...given };
    throw new Problem("InvalidValue", `${path}: the value is no object that these conditions hold for`);
  });
  return { path, place, value: element };
}

/** `list[0]` and `list[name=web]` may be one element. */
function assertApart(fields: readonly Located[]): void {
  fields.forEach(({ path, place }, position) => {
    for (const other of fields.slice(0, position)) {
      if (place.missing ?? other.place.missing) continue;
      if (place.at.startsWith(other.place.at) || other.place.at.startsWith(place.at)) {
        throw new Problem("InvalidBinding", `${other.path} and ${path} are at one place now; write each field once`);
      }
    }
  });
}

/** Whether the value stands there. Beside what is ours of an object, defaults and fields of others may stand. */
export function stands(
  { path, value }: Pick<PlannedField, "path" | "value">,
  live: KubeObject,
  manager: string,
  place?: FieldLocation,
): boolean {
  if (place?.missing) return false;
  const wanted = value.reveal();
  if (sameJson(path.get(live), wanted)) return true;
  return typeof wanted === "object" && !place?.within && sameJson(heldPart(live, manager, place?.held ?? path), wanted);
}

/** Says who holds which field, and how to let the binding have it. */
export function conflict(contested: readonly { path: string; manager: string }[]): Problem {
  const who = contested.map(({ path, manager }) => `${path} belongs to ${JSON.stringify(manager)}`).join(", ");
  const message = `${who}; nothing was written. Take the field out of what that manager applies, or set onConflict: Force on the target to take it over`;
  return new Problem("Conflict", message);
}

function missingParents(fields: readonly Located[], live: KubeObject): string[] {
  const missing = new Set<string>();
  for (const { path } of fields) {
    for (let parent = path.parent; parent !== undefined && parent.get(live) === undefined; parent = parent.parent) {
      missing.add(String(parent));
    }
  }
  return [...missing];
}
