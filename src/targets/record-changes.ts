/** Changes the record of a target in the status, before and after a write. Pure. */
import { heldPaths, type TargetStatus } from "../api/binding.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { type Decision, type Desired, waitingIn } from "../apply/decide.ts";
import type { Whole } from "../apply/manifest.ts";
import { holds } from "../apply/ownership.ts";

/**
 * The record before the write, with the paths that it acquires, those that an interrupted write may have acquired, and the
 * parents that it creates.
 */
export function intentRecord(
  record: TargetStatus,
  live: KubeObject,
  desired: Desired,
  decision: Decision,
): TargetStatus {
  const same = record.uid === live.metadata.uid ? record : withoutOwnership(record);
  const parents = listed("parents", [...(same.parents ?? []), ...decision.parents]);
  if (!decision.write || decision.acquires.length === 0) return { ...same, ...parents };
  const { message: _, ...begun } = same;
  const isAnnounced = decision.acquires.every((path) => same.pendingPaths?.includes(path));
  return {
    // Other bindings read the reason. A failed write that is retried keeps its reason, which does not block others from
    // the path.
    ...(isAnnounced ? same : { ...begun, reason: "Pending" }),
    uid: live.metadata.uid,
    ...listed("pendingPaths", [...decision.acquires, ...unconfirmed(same, desired)]),
    ...parents,
  };
}

/**
 * The record after everything is applied. `normalizedFor`: the revision of the values, if the API server stores one of
 * them in another form.
 */
export function appliedRecord(
  record: TargetStatus,
  live: KubeObject,
  desired: Desired,
  { repeated }: Decision,
  normalizedFor: string | undefined,
): TargetStatus {
  const { pendingPaths: _, revertedPaths = [], paths = [], normalizedFor: __, ...rest } = record;
  const written = [...desired.plan.fields, ...repeated].map(({ path }) => String(path));
  const waiting = waitingIn(desired).map(String);
  const ours = [...written, ...paths.filter((path) => waiting.includes(path))];
  // In order of acquisition: the status changes with the owned paths, not with the order of the spec.
  const inOrder = [...paths.filter((path) => ours.includes(path)), ...ours];
  const open = unconfirmed(record, desired).filter((path) => !ours.includes(path));
  const reverted = revertedPaths.filter((path) => open.includes(path));
  return {
    ...rest,
    uid: live.metadata.uid,
    paths: [...new Set(inOrder)],
    ...(normalizedFor !== undefined && { normalizedFor }),
    ...listed("pendingPaths", open),
    ...listed("revertedPaths", reverted),
  };
}

/**
 * The record after a write that left some paths unchanged: those that it should have acquired hold no value of Inlay. Not
 * a path that the field manager owned before, where an interrupted write may have stored a value.
 */
export function revertedRecord(
  record: TargetStatus,
  live: KubeObject,
  { fieldManager }: Desired,
  { fields }: Decision,
  unchanged: readonly string[],
): TargetStatus {
  const { revertedPaths = [], pendingPaths = [], ...rest } = record;
  const reverted = fields.flatMap(({ path, place }) => {
    const text = String(path);
    const isKnown = revertedPaths.includes(text) || !holds(live, fieldManager, place.held);
    return isKnown && unchanged.includes(text) && pendingPaths.includes(text) ? [text] : [];
  });
  return { ...rest, ...listed("pendingPaths", pendingPaths), ...listed("revertedPaths", reverted) };
}

/** The record of an object that the binding creates, after everything is applied. */
export function createdRecord(
  { pendingPaths: _a, parents: _p, normalizedFor: _n, ...record }: TargetStatus,
  { metadata }: KubeObject,
  whole: Whole,
  normalizedFor: string | undefined,
): TargetStatus {
  const paths = whole.fields.map(({ path }) => String(path));
  const made = { ...record, uid: metadata.uid, manifestDigest: whole.digest, paths };
  return normalizedFor === undefined ? made : { ...made, normalizedFor };
}

/** The record without some of its paths. */
export function withoutPaths(record: TargetStatus, gone: ReadonlySet<string>): TargetStatus {
  const { paths = [], pendingPaths = [], revertedPaths = [], ...rest } = record;
  const left = (list: string[]) => list.filter((path) => !gone.has(path));
  return {
    ...rest,
    ...listed("paths", left(paths)),
    ...listed("pendingPaths", left(pendingPaths)),
    ...listed("revertedPaths", left(revertedPaths)),
  };
}

/** The record with some of its paths as written, which were perhaps only announced. */
export function writtenRecord(record: TargetStatus, known: readonly string[]): TargetStatus {
  if (known.length === 0) return record;
  const { paths = [], pendingPaths = [], ...rest } = record;
  const open = pendingPaths.filter((path) => !known.includes(path));
  return { ...rest, ...listed("paths", [...paths, ...known]), ...listed("pendingPaths", open) };
}

/** The record after some of its paths were released. Removed parents are forgotten: another client may create them. */
export function releasedRecord(
  record: TargetStatus,
  gone: ReadonlySet<string>,
  mode: "Retain" | "Remove",
): TargetStatus {
  const left = withoutPaths(record, gone);
  if (mode === "Retain") return left;
  const paths = heldPaths(left).map((path) => FieldPath.parse(path));
  const isAbove = (parent: string) => paths.some((path) => path.startsWith(FieldPath.parse(parent)));
  const { parents = [], ...rest } = left;
  return { ...rest, ...listed("parents", parents.filter(isAbove)) };
}

/** The record of a target that waits for no other binding. Its old reason was for that binding, so it is reset. */
export function withoutAwaited(record: TargetStatus): TargetStatus {
  if (record.awaitedPaths === undefined) return record;
  const { awaitedPaths: _a, message: _m, ...rest } = record;
  return { ...rest, reason: "Pending" };
}

/** The record, without what Inlay saw after it wrote values of an earlier revision. */
export function ofRevision(record: TargetStatus, revision: string): TargetStatus {
  const { normalizedFor, ...rest } = record;
  return normalizedFor === undefined || normalizedFor === revision ? record : rest;
}

/** The record of a target in which the binding owns nothing. */
export function withoutOwnership(record: TargetStatus): TargetStatus {
  const { uid: _u, paths: _p, pendingPaths: _a, parents: _r, created: _c, manifestDigest: _m, ...kept } = record;
  const { adopted: _d, normalizedFor: _n, revertedPaths: _v, ...rest } = kept;
  return rest;
}

/** Paths that an interrupted write may have written, and whose value is missing since. */
function unconfirmed({ pendingPaths = [] }: TargetStatus, desired: Desired): string[] {
  const waiting = waitingIn(desired).map(String);
  return pendingPaths.filter((path) => waiting.includes(path));
}

function listed<K extends string>(key: K, values: readonly string[]): { [key in K]?: string[] } {
  return (values.length === 0 ? {} : { [key]: [...new Set(values)] }) as { [key in K]?: string[] };
}
