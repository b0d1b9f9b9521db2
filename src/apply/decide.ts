/** Decides whether and how to write to a target, from the plan, the target and the record of owned fields, and merges values for a JSON Patch. Pure. */
import type { TargetStatus } from "../api/binding.ts";
import { isOfBinding } from "../api/field-manager.ts";
import { type FieldPath, isNameable, type Segment, settled } from "../apimachinery/field-path.ts";
import { isObject, sameJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { isSameQuantity } from "../apimachinery/quantity.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { Plan, PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { conflict, contestedField } from "./conflict.ts";
import { assertUnique } from "./duplicates.ts";
import { namesIn, textOf } from "./elements.ts";
import { isAsLastWritten, isStored } from "./forms.ts";
import { otherHoldersOf } from "./leaves.ts";
import { conditionsOf, type FieldLocation, locate } from "./locate.ts";
import { appliesBeyond, heldPart, holds, isOfOtherVersion, nodesAt, otherAppliers, otherHolders } from "./ownership.ts";

/** The field with each quantity in the notation of the object, if both are equal. So an equal quantity is no difference. */
function inNotationOf<T extends Pick<PlannedField, "path" | "value">>(live: unknown, field: T, shape: TargetShape): T {
  const { path, value } = field;
  const there = path.get(live) as JsonValue | undefined;
  return { ...field, value: value.map((wanted) => spelled(wanted, there, path, shape)) };
}

function spelled(wanted: JsonValue, there: JsonValue | undefined, path: FieldPath, shape: TargetShape): JsonValue {
  if (there === undefined || sameJson(wanted, there)) return wanted;
  if (isObject(wanted) && isObject(there)) {
    const entries = Object.entries(wanted).map(([key, child]): [string, JsonValue] => {
      const isThere = isNameable(key) && Object.hasOwn(there, key);
      return [key, isThere ? spelled(child, there[key], path.with({ kind: "key", key }), shape) : child];
    });
    return Object.fromEntries(entries);
  }
  if (Array.isArray(wanted) && Array.isArray(there))
    return wanted.map((child, index) => spelled(child, there[index], path.with({ kind: "index", index }), shape));
  const isSame = typeof wanted === "string" && typeof there === "string" && isSameQuantity(wanted, there);
  return isSame && shape.isNormalizedQuantity(path) ? there : wanted;
}

/** Removes unwanted parts that only the binding owns. Keeps parts without an owner. */
function mergedAt(
  { held, within, missing }: FieldLocation,
  wanted: JsonValue,
  live: KubeObject,
  manager: string,
  shape: TargetShape,
): JsonValue {
  if (within || missing) return wanted;
  const at = { shape, path: held, ...nodesAt(live, manager, held) };
  return merge(at, held.get(live) as JsonValue | undefined, wanted) ?? wanted;
}

/** A location in the object, and the nodes of managedFields there: of the binding, and of all others. */
interface Owned extends ReturnType<typeof nodesAt> {
  shape: TargetShape;
  path: FieldPath;
}

/** Undefined: no value. If nothing is wanted, parts stay that the binding does not own alone. */
function merge(at: Owned, live: JsonValue | undefined, wanted: JsonValue | undefined): JsonValue | undefined {
  const { shape, path } = at;
  if (live === undefined) return wanted;
  const isList = Array.isArray(live) && (wanted === undefined || Array.isArray(wanted));
  if (isList && shape.listAt(path).kind !== "atomic") return mergeList(at, live, wanted);
  const isObjects = isObject(live) && (wanted === undefined || isObject(wanted));
  if (isObjects && !shape.isAtomic(path)) return mergeObject(at, live, wanted);
  return wanted === undefined && !isOursAlone(at) ? live : wanted;
}

/** `keys` are the fields that identify an element: they stay and go with it. */
function mergeObject(
  at: Owned,
  live: JsonObject,
  wanted: JsonObject | undefined,
  keys: readonly string[] = [],
): JsonObject | undefined {
  const names = new Set([...Object.keys(live), ...Object.keys(wanted ?? {})]);
  const entries = [...names].flatMap((name): [string, JsonValue][] => {
    const [current, want] = [own(live, name), own(wanted, name)];
    const isKept = keys.includes(name) || !isNameable(name);
    const below = () => under(at, { kind: "key", key: name }, () => [`f:${name}`]);
    const child = !isKept ? merge(below(), current, want) : want === undefined ? current : want;
    return child === undefined ? [] : [[name, child]];
  });
  const isEmpty = entries.every(([name]) => keys.includes(name));
  return wanted === undefined && isEmpty && isOursAlone(at) ? undefined : Object.fromEntries(entries);
}

/** Elements keep their order; new elements come last. */
function mergeList(
  at: Owned,
  live: readonly JsonValue[],
  wanted: readonly JsonValue[] | undefined,
): JsonValue[] | undefined {
  const { shape, path } = at;
  const type = shape.listAt(path);
  const keys = type.kind === "map" ? type.keys : [];
  const idOf = (element: JsonValue) =>
    type.kind === "map" ? keys.map((key) => textOf(keyOf(shape, path, element, key))).join() : textOf(element);
  const wants = new Map((wanted ?? []).map((each) => [idOf(each), each] as const).reverse());
  const kept = live.flatMap((element, index): JsonValue[] => {
    const want = wants.get(idOf(element));
    const here = under(at, { kind: "index", index }, (node) => namesIn(node).of(element));
    const isMergeable = isObject(element) && (want === undefined || isObject(want)) && type.kind === "map";
    const left = isMergeable
      ? mergeObject(here, element, want, keys)
      : want === undefined && !isOursAlone(here)
        ? element
        : want;
    return left === undefined ? [] : [left];
  });
  const present = new Set(live.map(idOf));
  const added = (wanted ?? []).filter((want) => !present.has(idOf(want)));
  const all = [...kept, ...added];
  return wanted === undefined && all.length === 0 && isOursAlone(at) ? undefined : all;
}

/** A missing key has its default. */
function keyOf(shape: TargetShape, list: FieldPath, element: JsonValue, key: string): JsonValue | undefined {
  const given = isObject(element) ? own(element, key) : undefined;
  return given ?? shape.defaultAt(list.with({ kind: "index", index: 0 }, { kind: "key", key }));
}

const isOursAlone = ({ own, others }: Owned) => own.length > 0 && others.length === 0;

const own = (object: JsonObject | undefined, name: string): JsonValue | undefined =>
  object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;

/** One segment further, with the children of all nodes with the given names. */
function under(
  { shape, path, own, others }: Owned,
  segment: Segment,
  namesOf: (node: JsonObject) => readonly string[],
): Owned {
  const below = (nodes: readonly JsonObject[]) =>
    nodes.flatMap((node) =>
      namesOf(node).flatMap((name) => (node[name] === undefined ? [] : [node[name] as JsonObject])),
    );
  return { shape, path: path.with(segment), own: below(own), others: below(others) };
}

export interface Desired {
  plan: Plan;
  shape: TargetShape;
  fieldManager: string;
  onConflict: "Fail" | "Force";
}

/** A value with its location in the object. */
export interface Located {
  path: FieldPath;
  place: FieldLocation;
  value: SecretValue<JsonValue>;
}

export interface Decision {
  write: boolean;
  /**
   * `patch`: by one JSON Patch, because a path goes into a list, an object, or elements with equal keys that an apply
   * replaces as a whole.
   */
  way: "apply" | "patch";
  fields: Located[];
  /**
   * Take the fields from other managers: because the binding says so, or because the record says that the binding owns
   * them.
   */
  force: boolean;
  /** Paths that the binding writes for the first time. */
  acquires: string[];
  /**
   * Objects, lists and elements around the paths that the write creates, or that Inlay created earlier, and that the
   * record does not have.
   */
  parents: string[];
  /**
   * Owned fields that stay without being written now. An apply repeats their values, because it removes what it omits.
   */
  repeated: Located[];
  /**
   * All paths that the binding names, as in managedFields. The binding's other fields are released before the apply.
   */
  keeps: FieldPath[];
  /** The managers that now own a path of the binding whose value differs. */
  takenBy: string[];
  /** Paths whose value differs from the wanted one. */
  differing: string[];
  /** Warnings about other managers that will conflict later. */
  warnings: string[];
}

/** The paths of a record, if it is about this object and not an earlier one of the same name. */
export function recordedPaths(record: TargetStatus | undefined, live: KubeObject): string[] {
  return record?.uid === live.metadata.uid ? (record.paths ?? []) : [];
}

/** The binding's fields that are not written now, and keep their values. */
export function waitingIn({ plan: { omitted, kept = [] } }: Desired): FieldPath[] {
  return [...omitted.flatMap(({ path, why }) => (why.policy.onMissing === "Wait" ? [path] : [])), ...kept];
}

/**
 * Throws Problem: Conflict if another manager owns a new field of the binding and the binding does not force it, or
 * Immutable if that field can't be changed;
 * ElementNotFound, and what `locate` and `assertUnique` throw; InvalidBinding if two paths lead to one location. `live`
 * must not change afterwards.
 */
export function decide(desired: Desired, live: KubeObject, record: TargetStatus | undefined): Decision {
  const { shape, fieldManager: manager } = desired;
  settled(live);
  const recorded = new Set(recordedPaths(record, live));
  const recordedParents = record?.uid === live.metadata.uid ? (record.parents ?? []) : [];
  const wanted = desired.plan.fields.map((field) => inNotationOf(live, locateField(field, shape, live), shape));
  assertApart(wanted);
  const waiting = waitingIn(desired)
    .map((path) => ({ path, place: locate(path, shape, live) }))
    .filter(({ place }) => place.missing === undefined);
  const way = [...wanted, ...waiting].some(({ place }) => place.within) ? "patch" : "apply";
  const keeps = [...wanted, ...waiting].map(({ place }) => place.held);
  // A patch replaces the whole value at a location, so it repeats what others own there.
  const put = (field: Located): Located =>
    way === "apply"
      ? field
      : { ...field, value: field.value.map((value) => mergedAt(field.place, value, live, manager, shape)) };
  const isAsWritten = isAsLastWritten(record, live);
  const isThere = (field: Located) => isStored(live, put(field), manager, shape, { isAsWritten, place: field.place });
  const differing = wanted.filter((field) => !isThere(field));
  const acquired = wanted.filter(({ path }) => !recorded.has(String(path)));

  const holdersOf = ({ place, value }: Located) =>
    place.within
      ? otherHolders(live, manager, place.held)
      : otherHoldersOf(live, manager, place.held, value.reveal(), shape);
  const contested = differing.flatMap((field) =>
    recorded.has(String(field.path)) || isPart(field, live)
      ? []
      : holdersOf(field).map((other) => contestedField(field.path, field.place.held, other, live, shape)),
  );
  if (contested.length > 0 && desired.onConflict === "Fail") throw conflict(contested);
  const alsoApplied = ({ place: { within, held } }: Located) =>
    (within ? otherAppliers(live, manager, held) : []).map(
      (other) =>
        `the API server treats ${held} as one value, and ${other} applies it: remove it from what ${other} applies, or it will conflict`,
    );
  const repeated = way === "patch" ? [] : waiting.flatMap((each) => heldAt(each, live, manager));
  for (const { path, place, value } of [...wanted, ...repeated])
    if (!place.within) assertUnique(path, value.reveal(), place.missing ? undefined : path.get(live), shape);
  const isOwned = wanted.every(({ place }) => holds(live, manager, place.held)) && !isOfOtherVersion(live, manager);
  return {
    write: differing.length > 0 || (way === "apply" && (!isOwned || appliesBeyond(live, manager, keeps))),
    way,
    fields: wanted.map(put),
    force: desired.onConflict === "Force" || acquired.length < wanted.length,
    acquires: acquired.map(({ path }) => String(path)),
    parents: parentsOf(wanted, acquired, live, manager, shape).filter((path) => !recordedParents.includes(path)),
    repeated,
    keeps,
    takenBy: [...new Set(differing.flatMap(holdersOf))],
    differing: differing.map(({ path }) => String(path)),
    warnings: [...new Set(acquired.flatMap(alsoApplied))],
  };
}

/**
 * Whether the field is a part of a list or an object that is one value: the manager that created it owns all of it, so a
 * part that a binding names is no conflict. Of elements with equal keys, only a field that has no value yet is.
 */
const isPart = ({ path, place: { within, duplicate } }: Located, live: KubeObject): boolean =>
  within && (duplicate === undefined || path.get(live) === undefined);

/** The location of a field, or of its new element, and the value to write. */
export function locateField({ path, value, append = false }: PlannedField, shape: TargetShape, live: unknown): Located {
  const place = locate(path, shape, live);
  if (place.missing !== undefined && !append) throw place.missing;
  if (place.unidentified !== undefined) throw place.unidentified;
  const conditions = conditionsOf(path.segments.at(-1));
  if (conditions.length === 0) return { path, place, value };
  // A whole element must keep the keys that the path names.
  const list = path.upTo(path.segments.length - 1);
  const identity = place.within ? shape.elementOf(list, conditions) : (place.keys.at(-1) ?? {});
  const element = value.map((given) => {
    if (isObject(given) && Object.entries(identity).every(([key, own]) => sameJson(given[key] ?? own, own)))
      return { ...identity, ...given };
    const what = "the value must be an object that matches the conditions of the path";
    throw new Problem("InvalidValue", { at: [String(path)], what });
  });
  return { path, place, value: element };
}

function heldAt({ path, place }: Omit<Located, "value">, live: KubeObject, manager: string): Located[] {
  const value = heldPart(live, manager, place.held);
  return value === undefined ? [] : [{ path, place, value: new SecretValue(value) }];
}

/** `list[0]` and `list[name=web]` may be the same element. */
function assertApart(fields: readonly Located[]): void {
  fields.forEach(({ path, place }, position) => {
    for (const other of fields.slice(0, position)) {
      if (place.missing ?? other.place.missing) continue;
      if (place.at.startsWith(other.place.at) || other.place.at.startsWith(place.at))
        throw new Problem("InvalidBinding", `${other.path} and ${path} lead to the same field; write each field once`);
    }
  });
}

/** The parents that the write creates, also when it corrects a field, and those that Inlay created for others. */
function parentsOf(
  fields: readonly Located[],
  acquired: readonly Located[],
  live: KubeObject,
  manager: string,
  shape: TargetShape,
): string[] {
  const isMissing = (parent: FieldPath) => parent.get(live) === undefined;
  const missing = fields.flatMap(({ path }) => parentsWhile(path, isMissing));
  const isOurs = (parent: FieldPath) => isMissing(parent) || isOfInlay(parent, live, manager, shape);
  return [...new Set([...missing, ...acquired.flatMap(({ path }) => parentsWhile(path, isOurs))].map(String))];
}

/** The parents of the path from the deepest on, as long as they meet the condition. */
function parentsWhile(path: FieldPath, holds: (parent: FieldPath) => boolean): FieldPath[] {
  const found: FieldPath[] = [];
  for (let parent = path.parent; parent !== undefined && holds(parent); parent = parent.parent) found.push(parent);
  return found;
}

/**
 * Whether only bindings own anything in an existing parent. Then a binding created it, whose value there was retained,
 * or is still there: a client that updates an object owns the parents that it creates. Unknown without any owner, and
 * for a list or an object that is one value, which the last writer owns.
 */
function isOfInlay(parent: FieldPath, live: KubeObject, manager: string, shape: TargetShape): boolean {
  const { within, held } = locate(parent, shape, live);
  const isOne = Array.isArray(parent.get(live)) ? shape.listAt(parent).kind !== "map" : shape.isAtomic(parent);
  if (within || isOne || String(parent) === "metadata" || !live.metadata.managedFields?.length) return false;
  return otherHolders(live, manager, held).every(isOfBinding);
}
