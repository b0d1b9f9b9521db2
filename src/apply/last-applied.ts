/**
 * Decides without a read what to write to a target that is as this binding last applied it, such as in a rotation. Only
 * for fields that depend on nothing else: not in lists or atomic objects, not merged with fields of others, not waiting.
 * Pure, except for a key of this process.
 */
import { createHmac, createSecretKey, randomBytes } from "node:crypto";
import type { TargetStatus } from "../api/binding.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { stringifyJson } from "../apimachinery/json.ts";
import {
  apiVersionOf,
  type JsonValue,
  type KubeObject,
  type ObjectRef,
  type Version,
} from "../apimachinery/objects.ts";
import { type Decision, type Desired, locateField } from "./decide.ts";
import type { Whole } from "./manifest.ts";

/** A target that is still as the binding last applied it. */
export interface LastApplied {
  /** Its current version. Changes since the last apply don't concern the binding. */
  version: Version;
  /** A digest of each value that the apply sent, with its path. */
  values: string;
}

/** A KeyObject, because `createHmac` takes much longer for a key of raw bytes. */
const KEY = createSecretKey(randomBytes(32));

/** Digests of these values at these paths; undefined if the values alone don't determine the state of the target. */
export function digestOf({ plan: { fields, omitted, kept } }: Desired): string | undefined {
  if (omitted.length > 0 || kept !== undefined) return undefined;
  const values = fields.map(({ path, value }) => [String(path), value.reveal()] as const);
  const isAlone = values.every(([, value]) => value === null || typeof value !== "object");
  if (!isAlone || !fields.every(({ path }) => path.isPlain)) return undefined;
  return values.map(hmacOf).join(" ");
}

/** Whether the last apply sent this value at this path. */
export const wasSent = ({ values }: LastApplied, path: FieldPath, value: JsonValue | undefined): boolean =>
  value !== undefined && values.split(" ").includes(hmacOf([String(path), value]));

const hmacOf = (values: unknown) => createHmac("sha256", KEY).update(stringifyJson(values)).digest("base64");

/** A digest of the values in an object that the binding creates, in that version of the kind. */
export const wholeDigestOf = ({ fields }: Whole, { resource }: ObjectRef): string =>
  [apiVersionOf(resource), ...fields.map(({ path, value }) => [String(path), value.reveal()])].map(hmacOf).join(" ");

/** Whether to write to an object that the binding created and last applied; undefined if it must be read. */
export function decideWholeByLastApplied(
  whole: Whole,
  ref: ObjectRef,
  record: TargetStatus,
  { version, values }: LastApplied,
): { write: boolean; takenBy: string[] } | undefined {
  const isOurs = record.created === true && record.uid === version.uid && record.manifestDigest === whole.digest;
  return isOurs ? { write: wholeDigestOf(whole, ref) !== values, takenBy: [] } : undefined;
}

/** Undefined if the target must be read, because the binding owns other fields of it than it should. */
export function decideByLastApplied(
  desired: Desired,
  record: TargetStatus,
  lastApplied: LastApplied,
): Decision | undefined {
  const values = digestOf(desired);
  const { fields } = desired.plan;
  const paths = new Set(fields.map(({ path }) => String(path)));
  const isHeld =
    record.uid === lastApplied.version.uid && record.pendingPaths === undefined && isSame(paths, record.paths ?? []);
  if (values === undefined || !isHeld) return undefined;
  const located = fields.map((field) => locateField(field, desired.shape, undefined));
  if (located.some(({ place }) => place.within)) return undefined;
  return {
    write: values !== lastApplied.values,
    way: "apply",
    fields: located,
    // The record says that the binding owns them.
    force: true,
    acquires: [],
    parents: [],
    repeated: [],
    keeps: located.map(({ place }) => place.held),
    takenBy: [],
    differing: [],
    warnings: [],
  };
}

/** The target without a read: enough for a write that fails if the version has changed. */
export function lastAppliedObject({ resource, namespace, name }: ObjectRef, { version }: LastApplied): KubeObject {
  const { uid, resourceVersion, generation } = version;
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: {
      name,
      uid,
      resourceVersion,
      ...(namespace !== undefined && { namespace }),
      ...(generation !== undefined && { generation }),
    },
  };
}

const isSame = (paths: ReadonlySet<string>, recorded: readonly string[]) =>
  recorded.length === paths.size && recorded.every((path) => paths.has(path));
