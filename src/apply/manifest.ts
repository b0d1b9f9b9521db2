/**
 * A manifest and the values of fields come in; the object that they make goes out, and whether the one that stands there
 * is it still. Pure.
 */
import { createHash } from "node:crypto";
import type { TargetStatus } from "../api/binding.ts";
import { CREATED_BY } from "../api/manifest.ts";
import { FieldPath, isNameable, type Segment } from "../apimachinery/field-path.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { TargetShape } from "../model/target-shape.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import { stands } from "./decide.ts";
import { namesIn, placeOfName } from "./elements.ts";
import { otherHolders } from "./ownership.ts";
import { withValues } from "./patch.ts";

/** The binding that an object is made by. */
export interface Maker {
  uid: string;
  fieldManager: string;
  /** What lets the garbage collector delete the object with the binding, where it may. */
  owner?: { apiVersion: string; kind: string; name: string };
}

/** All that a binding wants of an object that it makes. */
export interface Whole {
  /** Without apiVersion, kind, name and namespace. */
  object: JsonObject;
  fields: readonly PlannedField[];
  /** Changes with everything in the object but the values of fields. */
  digest: string;
  maker: Maker;
}

/**
 * Throws Problem("InvalidBinding") where a field goes through a place that the manifest has as a text or number, or an element
 * of a list that it does not have.
 */
export function composeWhole(
  manifest: JsonObject,
  fields: readonly PlannedField[],
  maker: Maker,
  shape: TargetShape,
): Whole {
  const object = filled(manifest, fields, shape);
  const metadata = (object["metadata"] ?? {}) as JsonObject;
  const { uid, owner } = maker;
  object["metadata"] = {
    ...metadata,
    labels: { ...(metadata["labels"] as JsonObject | undefined), [CREATED_BY]: uid },
    ...(owner && { ownerReferences: [{ ...owner, uid, controller: false, blockOwnerDeletion: false }] }),
  };
  const known = [manifest, uid, owner ?? null, fields.map(({ path }) => String(path)).sort()];
  const digest = createHash("sha256").update(stringifyJson(known)).digest("hex").slice(0, 16);
  return { object, fields, digest, maker };
}

/** Every value of a manifest, lists as one; but what no path can name. */
export function pathsIn(manifest: JsonObject): FieldPath[] {
  const walk = (value: JsonValue, segments: readonly Segment[]): FieldPath[] => {
    const keys = isObject(value) ? Object.keys(value) : [];
    if (keys.length === 0) return segments.length === 0 ? [] : [new FieldPath(segments)];
    return keys
      .filter(isNameable)
      .flatMap((key) => walk((value as JsonObject)[key] as JsonValue, [...segments, { kind: "key", key }]));
  };
  return walk(manifest, []);
}

/** Whether the binding made this very object. Whoever copies the label to another of that name says that it is ours. */
export function isMadeBy(uid: string, live: KubeObject, record: TargetStatus): boolean {
  return live.metadata.labels?.[CREATED_BY] === uid || (record.created === true && record.uid === live.metadata.uid);
}

/**
 * Whether to write, and who took what differs. What was applied last is in the record, and nobody can change or remove
 * any of it without taking it from us in managedFields: so a value that the server spells in its own way, or a default
 * beside ours, is no difference. Values of fields are compared too.
 */
export function decideWhole(
  whole: Whole,
  live: KubeObject,
  record: TargetStatus,
): { write: boolean; takenBy: string[] } {
  const { fieldManager } = whole.maker;
  const entries = live.metadata.managedFields ?? [];
  const [ours, others] = [entriesOf(fieldManager, entries), entries.filter((entry) => !isOf(fieldManager, entry))];
  const trees = others.map(({ fieldsV1 }) => fieldsV1 ?? {});
  const lost = ours.length === 0 ? [[]] : [...lostIn(whole.object, live, merged(ours), trees, [])];
  const changed = whole.fields.filter((field) => !stands(field, live, fieldManager)).map(({ path }) => path);
  const isOther = record.uid !== live.metadata.uid || record.manifest !== whole.digest;
  const takers = others.filter(({ fieldsV1 = {} }) => lost.some((keys) => keys.length > 0 && at(fieldsV1, keys)));
  return {
    write: isOther || lost.length > 0 || changed.length > 0,
    takenBy: [
      ...new Set([
        ...takers.map(({ manager }) => manager ?? "unknown"),
        ...changed.flatMap((path) => otherHolders(live, fieldManager, path)),
      ]),
    ],
  };
}

/** Everything under a manager's name, by whatever operation: what was posted stands there as an update. */
export function entriesOf(manager: string, entries: readonly ManagedFieldsEntry[]): JsonObject[] {
  return entries.filter((entry) => isOf(manager, entry)).map(({ fieldsV1 }) => fieldsV1 ?? {});
}

export function isOf(manager: string, entry: ManagedFieldsEntry): boolean {
  return entry.manager === manager && !entry.subresource;
}

/** What is in any of some sets of fields. */
export function merged(trees: readonly JsonObject[]): JsonObject {
  const all: JsonObject = {};
  for (const tree of trees) {
    for (const [key, below] of Object.entries(tree)) {
      all[key] = merged([...(isObject(all[key]) ? [all[key]] : []), below as JsonObject]);
    }
  }
  return all;
}

/** The keys, as fieldsV1 writes them, to what is wanted and not ours. `live`, `ours` and `others` are what stands there. */
function* lostIn(
  wanted: JsonValue,
  live: unknown,
  ours: JsonObject | undefined,
  others: readonly JsonObject[],
  keys: readonly string[],
): Generator<readonly string[]> {
  if (wanted === null) return;
  if (ours === undefined) {
    yield keys;
    return;
  }
  if (typeof wanted !== "object") return;
  const below = (key: string) => others.flatMap((tree) => (isObject(tree[key]) ? [tree[key]] : []));
  // A leaf is ours with all that is in it; so looks an object, too, of which others took everything.
  if (isLeaf(ours) && others.every(isLeaf)) {
    if (!covers(live, wanted)) yield keys;
  } else if (Array.isArray(wanted)) {
    for (const element of wanted) {
      const key = namesIn(ours).first(element) ?? elementKeyOf(others, element);
      // One of its keys that is not written out has the default.
      const found =
        Array.isArray(live) && key !== undefined ? live[placeOfName(live, key, { defaults: true })] : undefined;
      yield* key === undefined
        ? [keys]
        : lostIn(element, found, ours[key] as JsonObject | undefined, below(key), [...keys, key]);
    }
  } else {
    for (const [name, child] of Object.entries(wanted)) {
      const key = `f:${name}`;
      const found = isObject(live) && Object.hasOwn(live, name) ? live[name] : undefined;
      yield* lostIn(child, found, ours[key] as JsonObject | undefined, below(key), [...keys, key]);
    }
  }
}

const isLeaf = (tree: JsonObject) => Object.keys(tree).every((key) => key === ".");

function elementKeyOf(trees: readonly JsonObject[], element: JsonValue): string | undefined {
  for (const tree of trees) {
    const name = namesIn(tree).first(element);
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Whether all that is wanted is there, of whatever value. */
function covers(live: unknown, wanted: JsonValue): boolean {
  if (wanted === null) return true;
  if (Array.isArray(wanted)) {
    if (!Array.isArray(live)) return wanted.length === 0 && live === undefined;
    return live.length === wanted.length && wanted.every((element, index) => covers(live[index], element));
  }
  if (typeof wanted !== "object") return live !== undefined;
  return Object.entries(wanted).every(([name, child]) =>
    covers(isObject(live) && Object.hasOwn(live, name) ? live[name] : undefined, child),
  );
}

function at(tree: JsonObject, keys: readonly string[]): boolean {
  let node: JsonValue | undefined = tree;
  for (const key of keys) node = isObject(node) ? node[key] : undefined;
  return node !== undefined;
}

function filled(manifest: JsonObject, fields: readonly PlannedField[], shape: TargetShape): JsonObject {
  try {
    return withValues(manifest, fields, shape);
  } catch (error) {
    if (!(error instanceof Problem) || error.reason === "InvalidValue") throw error;
    throw new Problem("InvalidBinding", `what is made has no place for a value in its manifest: ${error.message}`);
  }
}
