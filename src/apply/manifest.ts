/** Composes the object that a binding makes, and decides whether the one that exists still is it. Pure. */

import { createHash } from "node:crypto";
import type { TargetStatus } from "../api/binding.ts";
import { CREATED_BY } from "../api/manifest.ts";
import { FieldPath, isNameable, type Segment, step } from "../apimachinery/field-path.ts";
import { at } from "../apimachinery/fields.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from "../apimachinery/objects.ts";
import { attemptSync, Problem } from "../apimachinery/problem.ts";
import type { PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { stands } from "./decide.ts";
import { namesIn, placeOfName } from "./elements.ts";
import { isEntryOf, isLeaf, isOfOtherVersion, otherHolders } from "./ownership.ts";
import { withValues } from "./patch.ts";

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

/** Throws Problem("InvalidBinding") where the manifest has no place for a field: a text on the way, or no such element. */
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

/**
 * Whether the binding made this very object: by the uid in the record. Anyone who may create such an object can write the label, so that
 * counts only while the record has no uid: from when the object is about to be made until it is known to be there.
 */
export function isMadeBy(uid: string, { metadata }: KubeObject, record: TargetStatus): boolean {
  if (record.created !== true) return false;
  return record.uid === undefined ? metadata.labels?.[CREATED_BY] === uid : record.uid === metadata.uid;
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
  // By any operation: managedFields show what was posted as an update.
  const ours = entries.filter((entry) => isEntryOf(entry, fieldManager));
  const others = entries.filter((entry) => !isEntryOf(entry, fieldManager));
  const lost =
    ours.length === 0 ? [[]] : [...lostIn(whole.object, live, merged(ours.map(fieldsOf)), others.map(fieldsOf), [])];
  const changed = whole.fields.filter((field) => !stands(field, live, fieldManager)).map(({ path }) => path);
  const isAsMade = record.uid === live.metadata.uid && record.manifestDigest === whole.digest;
  const isOther = !isAsMade || isOfOtherVersion(live, fieldManager);
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

export const fieldsOf = ({ fieldsV1 = {} }: ManagedFieldsEntry): JsonObject => fieldsV1;

/** What is in any of some sets of fields. */
export function merged(trees: readonly JsonObject[]): JsonObject {
  const all: JsonObject = {};
  for (const [key, below] of trees.flatMap((tree) => Object.entries(tree)))
    all[key] = merged([...(isObject(all[key]) ? [all[key]] : []), below as JsonObject]);
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
      const key = elementKeyOf([ours, ...others], element);
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

/** Whether all that is wanted is there, of whatever value. */
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
  throw new Problem("InvalidBinding", `what is made has no place for a value in its manifest: ${object.message}`);
}
