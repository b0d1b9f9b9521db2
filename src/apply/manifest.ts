/** Composes the object that a binding creates, and decides whether the existing object still matches. Pure. */

import { createHash } from "node:crypto";
import type { TargetStatus } from "../api/binding.ts";
import { CREATED_BY } from "../api/manifest.ts";
import { FieldPath, isNameable, type Segment, settled, step } from "../apimachinery/field-path.ts";
import { at } from "../apimachinery/fields.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { namesIn, placeOfName } from "./elements.ts";
import { isAsLastWritten, isStored, pathByKeys } from "./forms.ts";
import { locateIn } from "./locate.ts";
import { fieldsOf, isLeaf, isOfOtherVersion, merged, otherEntries, otherHolders, ownEntries } from "./ownership.ts";
import { withValues } from "./patch.ts";

export interface Creator {
  uid: string;
  fieldManager: string;
  /** Set if the garbage collector may delete the object with the binding. */
  owner?: { apiVersion: string; kind: string; name: string };
}

/** The object that a binding creates, with all its fields. */
export interface Whole {
  /** Without apiVersion, kind, name and namespace. */
  object: JsonObject;
  fields: readonly PlannedField[];
  /** Changes with everything in the object except the values of fields. */
  digest: string;
  creator: Creator;
  /** The data has only the keys of this object. */
  isExact?: true;
}

/**
 * Throws Problem("InvalidBinding") if a field has no place in the manifest: a text on its path, or a missing element.
 */
export function composeWhole(
  manifest: JsonObject,
  fields: readonly PlannedField[],
  creator: Creator,
  shape: TargetShape,
): Whole {
  const object = filled(manifest, fields, shape);
  const metadata = (object["metadata"] ?? {}) as JsonObject;
  const { uid, owner } = creator;
  object["metadata"] = {
    ...metadata,
    labels: { ...(metadata["labels"] as JsonObject | undefined), [CREATED_BY]: uid },
    ...(owner && { ownerReferences: [{ ...owner, uid, controller: false, blockOwnerDeletion: false }] }),
  };
  const known = [manifest, uid, owner ?? null, fields.map(({ path }) => String(path)).sort()];
  const digest = createHash("sha256").update(stringifyJson(known)).digest("hex").slice(0, 16);
  return { object: settled(object), fields, digest, creator };
}

/** The paths of all values of a manifest, with lists as one value; without values that no path can name. */
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

/**
 * Whether the binding created this very object, by the uid in the record. Anyone who may create such an object can
 * write the label. So the label counts only until the record has a uid: from before the creation until the object is
 * known.
 */
export function isCreatedBy(uid: string, { metadata }: KubeObject, record: TargetStatus): boolean {
  if (record.created !== true) return false;
  return record.uid === undefined ? metadata.labels?.[CREATED_BY] === uid : record.uid === metadata.uid;
}

/**
 * Whether to write, and which managers own differing fields. The record has the digest of the last apply, and no change
 * of its fields is possible without taking ownership in managedFields. So a value that the server normalizes, or a
 * default beside it, is no difference. The values of fields are compared too. `live` must not change
 * afterwards.
 */
export function decideWhole(
  whole: Whole,
  live: KubeObject,
  record: TargetStatus,
  shape: TargetShape,
): { write: boolean; takenBy: string[] } {
  const { fieldManager } = whole.creator;
  // Searches in it are remembered from now on.
  settled(live);
  // By any operation: a POST is an Update in managedFields.
  const ours = ownEntries(live, fieldManager);
  const others = otherEntries(live, fieldManager);
  const lost =
    ours.length === 0 ? [[]] : [...lostIn(whole.object, live, merged(ours.map(fieldsOf)), others.map(fieldsOf), [])];
  const isAsWritten = isAsLastWritten(record, live);
  const changed = fieldsByKeys(whole, shape)
    .filter(({ at, value }) => !isStored(live, { path: at, value }, fieldManager, shape, { isAsWritten }))
    .map(({ at }) => at);
  const isUnchanged = record.uid === live.metadata.uid && record.manifestDigest === whole.digest;
  const isOther = !isUnchanged || isOfOtherVersion(live, fieldManager);
  const takers = others.filter((entry) =>
    lost.some((keys) => keys.length > 0 && at(fieldsOf(entry), ...keys) !== undefined),
  );
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

/** The fields, with paths that name elements by their keys. */
export const fieldsByKeys = ({ fields, object }: Whole, shape: TargetShape): (PlannedField & { at: FieldPath })[] =>
  fields.map((field) => {
    const place = locateIn(field.path, shape, object);
    // The API server adds missing keys.
    const isKnown = (own: JsonObject) => Object.values(own).every((key) => key !== undefined);
    return { ...field, at: place?.keys.every(isKnown) ? pathByKeys(field.path, place) : field.path };
  });

/**
 * The keys, as in fieldsV1, of wanted values that the binding does not own. The other arguments are the current state.
 */
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
  // The owner of a leaf owns all of its content. An object whose fields others have all taken looks like a leaf too.
  if (isLeaf(ours) && others.every(isLeaf)) {
    if (!covers(live, wanted)) yield keys;
  } else if (Array.isArray(wanted)) {
    for (const element of wanted) {
      const key = elementKeyOf([ours, ...others], element);
      // A key that is missing has its default.
      const found =
        Array.isArray(live) && key !== undefined ? live[placeOfName(live, key, { defaults: true })] : undefined;
      yield* key === undefined
        ? [keys]
        : lostIn(element, found, ours[key] as JsonObject | undefined, below(key), [...keys, key]);
    }
  } else {
    for (const [name, child] of Object.entries(wanted)) {
      const key = `f:${name}`;
      yield* lostIn(child, step(live, { kind: "key", key: name }), ours[key] as JsonObject | undefined, below(key), [
        ...keys,
        key,
      ]);
    }
  }
}

function elementKeyOf(trees: readonly JsonObject[], element: JsonValue): string | undefined {
  for (const tree of trees) {
    const name = namesIn(tree).first(element);
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Whether all wanted fields exist, with any values. */
function covers(live: unknown, wanted: JsonValue): boolean {
  if (wanted === null) return true;
  if (Array.isArray(wanted)) {
    if (!Array.isArray(live)) return wanted.length === 0 && live === undefined;
    return live.length === wanted.length && wanted.every((element, index) => covers(live[index], element));
  }
  if (typeof wanted !== "object") return live !== undefined;
  return Object.entries(wanted).every(([key, child]) => covers(step(live, { kind: "key", key }), child));
}

function filled(manifest: JsonObject, fields: readonly PlannedField[], shape: TargetShape): JsonObject {
  const object = attemptSync(() => withValues(manifest, fields, shape));
  if (!(object instanceof Problem)) return object;
  if (object.reason === "InvalidValue") throw object;
  throw new Problem("InvalidBinding", `the manifest has no place for a value: ${object.message}`);
}
