/**
 * Defers to an older binding that names a path of a target: nothing is written to it, whatever `onConflict` says, and what
 * blocks the older one is given up.
 */
import {
  heldPaths,
  namespaceIn,
  onConflictOf,
  onReleaseOf,
  type SecretBinding,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import { mayOverlap, parsePaths } from "../apimachinery/path-overlap.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { FieldClaim } from "../cache/field-claims.ts";
import { attempt, forbidden, refusal, verbsFor } from "../kube/access-error.ts";
import { isStatus } from "../kube/api-error.ts";
import { serviceAccountIdentity } from "../kube/identity.ts";
import type { Dependencies, SyncContext } from "./dependencies.ts";
import type { TargetWithRecord } from "./records.ts";
import { pathsOf, releasePaths } from "./release.ts";
import type { PreparedTarget } from "./sync.ts";

/**
 * What older bindings claim of an object where this one writes or holds something, the oldest first. One that is not acted
 * upon, since it stands in a closed namespace, has what it holds and no more.
 */
export function olderClaims(
  { bindings, installation }: Dependencies,
  binding: SecretBinding,
  ref: ObjectRef,
  paths: Iterable<string>,
): FieldClaim[] {
  const isClosed = (key: string) => installation.closedNamespace(namespaceIn(key)) !== undefined;
  return bindings.olderClaims(binding, ref, paths).filter((claim) => claim.held || !isClosed(claim.key));
}

/** What becomes of a target that an older binding is at; undefined if there is none, or their paths don't touch. */
export async function deferToOlderBinding(
  context: SyncContext,
  { target, ref, record }: TargetWithRecord,
): Promise<PreparedTarget | undefined> {
  if (ref instanceof Problem) return undefined;
  // It may have made the object, and not come to say so: its label tells.
  if (record.created && record.uid === undefined) return undefined;
  const lost = await attempt(lostTo(context, target, ref, record));
  if (lost instanceof Problem) return { record, problem: lost };
  if (lost === undefined) return undefined;
  const keep = new Set(heldPaths(record).filter((path) => !lost.paths.has(path)));
  const released: Awaited<ReturnType<typeof releasePaths>> = record.created
    ? { record, released: false }
    : await releasePaths(context, record, "Retain", keep);
  if (released.problem) return { record: released.record, problem: released.problem };
  // Who has it is told to nobody who has no right to the object himself.
  const refused = released.released ? undefined : await attempt(mayPatch(context, target, ref));
  if (refused instanceof Problem) return { record, problem: refused };
  const message = `${lost.path} is for the SecretBinding ${lost.to}, which was there first; nothing was written. Take the field out of one of the two`;
  // It is looked at again when the other one changes.
  const reason = onConflictOf(context.binding, target) === "Force" ? "Contended" : "Conflict";
  return { record: released.record, problem: new Problem(reason, message, "OnChange") };
}

interface Lost {
  /** The first path that the target names and may not have, and whose it is. */
  path: string;
  to: string;
  /** All that touches what is older bindings', recorded or named. */
  paths: ReadonlySet<string>;
}

async function lostTo(
  { deps, binding }: SyncContext,
  target: Target,
  ref: ObjectRef,
  record: TargetStatus,
): Promise<Lost | undefined> {
  const named = pathsOf(target);
  const names = new Set([...named, ...heldPaths(record)]);
  const ours = parsePaths(names);
  const paths = new Set<string>();
  let first: Pick<Lost, "path" | "to"> | undefined;
  for (const claim of olderClaims(deps, binding, ref, names)) {
    if (paths.size === ours.length) break;
    const theirs = parsePaths(claim.paths);
    const touched = ours.filter((path) => theirs.some((other) => mayOverlap(path, other))).map(String);
    const contested = touched.find((path) => named.has(path));
    if (contested === undefined || !(claim.held || (await mayWrite(deps, claim, ref)))) continue;
    for (const path of touched) paths.add(path);
    first ??= { path: contested, to: claim.key };
  }
  return first && { ...first, paths };
}

/** One that only names an object, and has no rights there, keeps nobody from it. */
async function mayWrite({ client }: Dependencies, { key, account }: FieldClaim, ref: ObjectRef): Promise<boolean> {
  const identity = serviceAccountIdentity(namespaceIn(key), account);
  try {
    return await client.may(identity, "patch", ref.resource, ref.namespace, ref.name);
  } catch (error) {
    if (isStatus(error, 403)) return false;
    throw error;
  }
}

/** Throws Problem if the binding's own account may not. */
async function mayPatch({ deps, binding, identity }: SyncContext, target: Target, ref: ObjectRef): Promise<void> {
  const isMade = target.create !== undefined;
  const use = { identity, ref, verbs: verbsFor(isMade, onReleaseOf(binding, target, isMade)) };
  try {
    if (await deps.client.may(identity, "patch", ref.resource, ref.namespace, ref.name)) return;
  } catch (error) {
    throw refusal(error, use, "patch");
  }
  throw forbidden(use, "patch");
}
