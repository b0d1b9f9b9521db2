/**
 * What should stand in a target comes in, and how this binding left it; what to write goes out without a look at it, as
 * for a rotation. Pure but for a key of this process. Only fields that stand alone can be told so: not what goes into
 * lists, what merges with what others hold, or what waits.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { TargetStatus } from "../api/binding.ts";
import { stringifyJson } from "../apimachinery/json.ts";
import { apiVersionOf, type KubeObject, type ObjectRef, type Version } from "../apimachinery/objects.ts";
import { type Decision, type Desired, locateField } from "./decide.ts";

/** A target as this binding left it, and nobody has changed it since. */
export interface Left {
  /** The version that it has now: what changed since then is nothing that the binding looks at. */
  version: Version;
  values: string;
}

const KEY = randomBytes(32);

/** What tells these values, at these paths, from any other; undefined where that does not suffice to know what stands there. */
export function digestOf({ plan: { fields, leftOut, kept } }: Desired): string | undefined {
  if (leftOut.length > 0 || kept !== undefined) return undefined;
  const values = fields.map(({ path, value }) => [String(path), value.reveal()] as const);
  const isAlone = values.every(([, value]) => value === null || typeof value !== "object");
  if (!isAlone || !fields.every(({ path }) => path.isPlain)) return undefined;
  return createHmac("sha256", KEY).update(stringifyJson(values)).digest("base64");
}

/** Undefined if the target has to be read: the binding holds other fields of it than it should. */
export function decideUnread(desired: Desired, record: TargetStatus, left: Left): Decision | undefined {
  const values = digestOf(desired);
  const { fields } = desired.plan;
  const paths = new Set(fields.map(({ path }) => String(path)));
  const isHeld = record.uid === left.version.uid && record.acquiring === undefined && isSame(paths, record.paths ?? []);
  if (values === undefined || !isHeld) return undefined;
  const located = fields.map((field) => locateField(field, desired.shape, undefined));
  return {
    write: values !== left.values,
    way: "apply",
    fields: located,
    // They are ours by record.
    force: true,
    acquires: [],
    parents: [],
    carried: [],
    keeps: located.map(({ place }) => place.held),
    takenBy: [],
    differing: [],
    warnings: [],
  };
}

/** What is known of the target without a look: enough to write to it, if it is still of that version. */
export function unread({ resource, namespace, name }: ObjectRef, { version }: Left): KubeObject {
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
