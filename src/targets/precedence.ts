/**
 * Defers to the binding with precedence on a path of a target: the one that owns the path, else the oldest that can
 * write it. Then nothing is written to the target, whatever `onConflict` is. If two own a path, the younger releases
 * it.
 */
import {
  heldPaths,
  namespaceIn,
  onConflictOf,
  type SecretBinding,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import { mayOverlap } from "../apimachinery/path-overlap.ts";
import { Problem } from "../apimachinery/problem.ts";
import {
  accountOf,
  type CompetingClaim,
  claimedPaths,
  type FieldClaim,
  type PathList,
  parsedPaths,
} from "../cache/field-claims.ts";
import { attempt } from "../kube/access-error.ts";
import { isStatus } from "../kube/api-error.ts";
import { assertMay } from "../kube/get.ts";
import { serviceAccountIdentity } from "../kube/identity.ts";
import { type Dependencies, type SyncContext, targetAccess } from "./dependencies.ts";
import { withoutAwaited } from "./record-changes.ts";
import type { TargetWithRecord } from "./records.ts";
import { pathsOf, releasePaths } from "./release.ts";

/**
 * The limit of accounts whose permission is checked for each object. Claims of further accounts have no precedence,
 * unless they certainly own the path.
 */
const MAX_ACCOUNTS_ASKED = 16;

/**
 * The claims of other bindings that may prevent this one from writing to an object: owned paths first, then by age. A
 * binding in a closed namespace has only the paths that it owns. Yields where it may be interrupted.
 */
export function* competingClaims(
  { bindings, installation }: Pick<Dependencies, "bindings" | "installation">,
  binding: SecretBinding,
  ref: ObjectRef,
  paths: readonly PathList[],
): Generator<void, CompetingClaim[]> {
  const isClosed = (key: string) => installation.closedNamespace(namespaceIn(key)) !== undefined;
  const claims: CompetingClaim[] = [];
  for (const claim of yield* bindings.competingClaims(binding, ref, paths)) {
    yield;
    if (claim.held || !isClosed(claim.key)) claims.push(claim);
  }
  return claims;
}

/** The outcome for a target if another binding has precedence on one of its paths; undefined if none has. */
export async function deferToCompetingBinding(
  context: SyncContext,
  { target, ref, record: before }: TargetWithRecord,
): Promise<{ record: TargetStatus; problem: Problem } | undefined> {
  const record = withoutAwaited(before);
  if (ref instanceof Problem) return undefined;
  // It may have created the object without recording the uid: the label shows whether it did.
  if (record.created && record.uid === undefined) return undefined;
  const lost = await attempt(lostTo(context, target, ref, record));
  if (lost instanceof Problem) return { record, problem: lost };
  if (lost === undefined) return undefined;
  const keep = new Set(heldPaths(record).filter((path) => !lost.paths.has(path)));
  const released: Awaited<ReturnType<typeof releasePaths>> = record.created
    ? { record, released: false }
    : await releasePaths(context, record, "Retain", keep);
  if (released.problem) return { record: released.record, problem: released.problem };
  // Names the other binding only to accounts that may write the object.
  const refused = released.released
    ? undefined
    : await attempt(assertMay(targetAccess(context, { target, ref }), "patch"));
  if (refused instanceof Problem) return { record, problem: refused };
  const message = `the SecretBinding ${lost.to} has precedence on ${lost.path}; nothing was written. Remove the field from one of the two bindings`;
  // Requeued when the other binding changes.
  const reason = onConflictOf(context.binding, target) === "Force" ? "Contended" : "Conflict";
  const awaitedPaths = [...lost.paths].filter((path) => pathsOf(target).has(path));
  return { record: { ...released.record, awaitedPaths }, problem: new Problem(reason, message, "OnChange") };
}

interface Lost {
  /** The first path that the target names but may not have, and the binding with precedence. */
  path: string;
  to: string;
  /** All paths, recorded or named, that overlap with paths of other bindings. */
  paths: ReadonlySet<string>;
}

async function lostTo(
  { deps, binding }: SyncContext,
  target: Target,
  ref: ObjectRef,
  record: TargetStatus,
): Promise<Lost | undefined> {
  const named = pathsOf(target);
  // Many objects have the same lists.
  const lists = [named, record.paths ?? [], record.pendingPaths ?? []];
  const namespace = binding.metadata.namespace as string;
  const claims = await deps.cpu.steps(namespace, competingClaims(deps, binding, ref, lists));
  if (claims.length === 0) return undefined;
  const held = new Set(claimedPaths(record));
  const ours = [...new Map(lists.flatMap(parsedPaths).map((path) => [String(path), path])).values()];
  const paths = new Set<string>();
  let first: Pick<Lost, "path" | "to"> | undefined;
  const asked = new Map<string, boolean>();
  const mayAccountWrite = async (claim: FieldClaim): Promise<boolean> => {
    const account = accountOf(claim);
    if (!asked.has(account) && asked.size < MAX_ACCOUNTS_ASKED) asked.set(account, await mayWrite(deps, claim, ref));
    return asked.get(account) ?? false;
  };
  for (const claim of claims) {
    if (paths.size === ours.length) break;
    const touched = await deps.cpu.run(namespace, () => {
      const theirs = parsedPaths(claim.paths);
      return ours
        .filter((path) => isTheirs(claim, held.has(String(path))) && theirs.some((other) => mayOverlap(path, other)))
        .map(String);
    });
    const contested = touched.find((path) => named.has(path));
    if (contested === undefined) continue;
    if (!(claim.held && !claim.pending) && !(await mayAccountWrite(claim))) continue;
    for (const path of touched) paths.add(path);
    first ??= { path: contested, to: claim.key };
  }
  return first && { ...first, paths };
}

/** Whether a path of the claim belongs to the other binding. `isHeld`: this binding owns it. */
function isTheirs(claim: CompetingClaim, isHeld: boolean): boolean {
  if (!claim.isOlder) return !isHeld;
  return claim.held || claim.created || !(isHeld || claim.passed);
}

/** A binding that may not have written to an object, and has no permission to, has no precedence. */
async function mayWrite({ client }: Dependencies, { key, account }: FieldClaim, ref: ObjectRef): Promise<boolean> {
  const identity = serviceAccountIdentity(namespaceIn(key), account);
  try {
    return await client.may(identity, "patch", ref.resource, ref.namespace, ref.name);
  } catch (error) {
    if (isStatus(error, 403)) return false;
    throw error;
  }
}
