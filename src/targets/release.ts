/**
 * Releases fields and objects that the status records and the spec no longer names. Every recorded write can be
 * released.
 */
import {
  bindingKey,
  copiesAll,
  fieldsOfTarget,
  heldPaths,
  onReleaseOf,
  recordId,
  type SecretBinding,
  selects,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import { fieldManagerOf } from "../api/field-manager.ts";
import { isWritableKind, isWritablePath } from "../api/writable.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { getOrInsert, oncePerObject } from "../apimachinery/maps.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import {
  describeObject,
  describeRef,
  isSameKind,
  type ObjectMeta,
  type ObjectRef,
  parseApiVersion,
  plainPath,
} from "../apimachinery/objects.ts";
import { parsePaths } from "../apimachinery/path-overlap.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { EventReason } from "../apimachinery/reasons.ts";
import { NAMESPACES, SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { namespaceEnds, releaseObject } from "../apply/create.ts";
import type { Creator } from "../apply/manifest.ts";
import { type Released, release } from "../apply/release.ts";
import { accountNotFound, attempt, verbsFor } from "../kube/access-error.ts";
import { getAsController } from "../kube/get.ts";
import { type Identity, serviceAccountIdentity } from "../kube/identity.ts";
import type { KindDeletions } from "../kube/kind-deletions.ts";
import { deniedBy, howToShow } from "../kube/rejection.ts";
import { explainCommand } from "../kube/remove-commands.ts";
import { describeError } from "../observability/log.ts";
import { BINARY_DATA } from "../transform/plan.ts";
import { shapeOf } from "../transform/target-shape.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { actorOf } from "./actor.ts";
import { type Dependencies, type ReleaseContext, writeAccess } from "./dependencies.ts";
import type { TargetOutcome } from "./outcome.ts";
import { releasedRecord, withoutOwnership, withoutPaths, writtenRecord } from "./record-changes.ts";
import { resolveRecorded } from "./references.ts";
import { FIND_RULES, MAX_NAMED, revisionOf } from "./reverted.ts";
import { sharedValues } from "./shared-values.ts";

/** How long a deleted binding waits for targets that can't be released, counted across changes of the leader. */
const BEST_EFFORT_MS = 60_000;
/** An event cuts a longer note, and the command is at its end. */
const MAX_NAMES_LENGTH = 300;
/** The minimum time for which a leader tries: the deletion may be long ago, and one failed request proves nothing. */
const LEAST_EFFORT_MS = 5_000;

/** Releases recorded objects that are no targets of the spec any more. Returns the failures. */
export async function releaseRemovedTargets(
  context: ReleaseContext,
  named: ReadonlySet<TargetStatus>,
): Promise<TargetOutcome[]> {
  const unnamed = (context.binding.status?.targets ?? []).filter((each) => !named.has(each));
  const outcomes = await mapConcurrent(unnamed, async (before) => {
    const { record, problem } = await releasePaths(context, before, before.onRelease ?? "Retain", new Set());
    // If the namespace is deleted, its permissions may go first, and nothing is left to release.
    const isOver = problem === undefined || (await isDeletedWithNamespace(context, before));
    return isOver ? [] : [{ record, problem }];
  });
  return outcomes.flat();
}

/** What a deleted binding still has to release, and why it could not. */
export interface StillHeld {
  records: readonly TargetStatus[];
  problem?: Problem;
}

/** What the release of a deleted binding needs beside the other services. */
export interface ReleaseDependencies extends Dependencies {
  kindDeletions: Pick<KindDeletions, "isOngoing">;
}

/**
 * Releases the records of a deleted binding. Returns those to retry: all failures, until a minute after the deletion.
 * `since` is when this process observed the deletion, in ms of the epoch. A binding that is deleted with its kind keeps everything.
 */
export async function releaseDeletedBinding(
  deps: ReleaseDependencies,
  binding: SecretBinding,
  records: readonly TargetStatus[],
  since: number,
): Promise<StillHeld> {
  if (records.length === 0) return { records };
  const isKept = await attempt(deps.kindDeletions.isOngoing(SECRET_BINDINGS, binding.metadata));
  if (isKept === undefined) return { records };
  // Only an outage hides the answer. Without it, the garbage collector could delete what the binding created.
  if (isKept instanceof Problem) return { records, problem: isKept };
  if (isKept) return keepAll(deps, binding, records, since);
  const outcomes = await attemptAny(deps, binding, () => releaseRecords(deps, binding, records));
  const left = failuresOf(records, outcomes);
  const held = heldAfter(left);
  const { problem } = held;
  if (problem === undefined || !isTimeUp(deps, binding, since)) return held;
  const done = abandoned(deps, binding, `values may remain in targets: ${problem.message}`);
  for (const { record, problem: cause = problem } of left)
    await attemptAny(deps, binding, () => reportOnTarget(deps, binding, record, cause));
  return done;
}

/**
 * For a binding that is deleted with its kind. Only the garbage collector would delete something, so it only gives up the objects of which
 * the binding is an owner. The minute begins when this process tries, because the permissions for it may just have been installed again.
 */
async function keepAll(
  deps: Dependencies,
  binding: SecretBinding,
  records: readonly TargetStatus[],
  since: number,
): Promise<StillHeld> {
  const { namespace } = binding.metadata;
  const owned = records.filter((each) => each.created === true && each.namespace === namespace);
  const giveUp = () => releaseRecords(deps, binding, owned, "Retain");
  const held = heldAfter(failuresOf(owned, owned.length === 0 ? [] : await attemptAny(deps, binding, giveUp)));
  if (held.problem !== undefined) {
    if (Date.now() - since < BEST_EFFORT_MS) return held;
    const names = held.records.map(({ kind, name = "" }) => describeObject(kind, namespace, name));
    const what = `the garbage collector may delete what this binding created: ${firstOf(names, MAX_NAMED)}`;
    return abandoned(deps, binding, `${what}: ${held.problem.message}`);
  }
  const note = "kept all values and objects, because the CustomResourceDefinition of the binding is being deleted";
  deps.events.record(binding, { type: "Normal", reason: "Retained", action: "Release", note });
  deps.log.info({ binding: bindingKey(binding), reason: "Retained" }, note);
  return held;
}

/** A problem of the whole release is one of each record. */
const failuresOf = (records: readonly TargetStatus[], outcomes: readonly TargetOutcome[] | Problem) =>
  outcomes instanceof Problem ? records.map((record): TargetOutcome => ({ record, problem: outcomes })) : outcomes;

function heldAfter(left: readonly TargetOutcome[]): StillHeld {
  const problem = left.at(-1)?.problem;
  return problem === undefined ? { records: [] } : { records: left.map(({ record }) => record), problem };
}

function abandoned(deps: Dependencies, binding: SecretBinding, why: string): StillHeld {
  const note = `release abandoned after ${BEST_EFFORT_MS / 1000} s; ${why}`;
  deps.events.record(binding, { type: "Warning", reason: "ReleaseAbandoned", action: "Release", note });
  deps.log.warn({ binding: bindingKey(binding), reason: "ReleaseAbandoned" }, note);
  return { records: [] };
}

/** The binding is gone afterwards, so an event about the target says what is left. */
async function reportOnTarget(
  deps: Dependencies,
  binding: SecretBinding,
  recorded: TargetStatus,
  { reason }: Problem,
): Promise<void> {
  const record = credible(recorded);
  const { apiVersion, kind, namespace, name, uid, created } = record;
  const paths = heldPaths(record);
  const isLeft = created === true || paths.length > 0;
  if (uid === undefined || !isLeft || releaseModeOf(binding, record) !== "Remove") return;
  const ref = await resolveRecorded(record, deps.discovery);
  if (ref === undefined) return;
  const named = firstOf(paths.map(plainPath), MAX_NAMED);
  const fields = named.length > MAX_NAMES_LENGTH ? `${paths.length} fields` : named;
  const what = created ? "this object, which it created" : `${fields} of this object`;
  // The account may not read the object, so which of its values others own too is for the user to see.
  const note = `SecretBinding ${bindingKey(binding)} was deleted, and Inlay could not release ${what} (${reason}); show what is left, and the command that removes it, with: ${explainCommand(ref)}`;
  const regarding = { apiVersion, kind, metadata: { name, namespace, uid } };
  deps.events.recordOn(regarding, { type: "Warning", reason: "ReleaseAbandoned", action: "Release", note });
}

/**
 * Whether a deleted object has waited for a minute. The deletion time of a binding without finalizer is unknown, so its minute begins when
 * its absence is observed.
 */
export function isTimeUp(
  { serverTime }: Pick<Dependencies, "serverTime">,
  { metadata }: { metadata: Pick<ObjectMeta, "deletionTimestamp"> },
  since: number,
): boolean {
  const tried = Date.now() - since;
  if (metadata.deletionTimestamp === undefined) return tried >= BEST_EFFORT_MS;
  // By the API server's clock, which set it: the local clock may be minutes off.
  return tried >= LEAST_EFFORT_MS && serverTime() - Date.parse(metadata.deletionTimestamp) >= BEST_EFFORT_MS;
}

/** The outcomes of failed releases. `mode` overrides the spec. */
async function releaseRecords(
  deps: Dependencies,
  binding: SecretBinding,
  records: readonly TargetStatus[],
  mode?: "Retain",
): Promise<TargetOutcome[]> {
  const namespace = binding.metadata.namespace as string;
  const identity = serviceAccountIdentity(namespace, binding.spec.serviceAccountName);
  // A deletion of a namespace also deletes its accounts, which is no decision against Inlay.
  const isEnding = await isTerminating(deps, namespace);
  const actor = actorOf(binding, deps.installation);
  const account =
    actor instanceof Problem ? actor : isEnding ? undefined : await accountProblem(deps, identity, actor.account);
  const context = { deps, binding, identity, account };
  const endings = new Map([[namespace, Promise.resolve(isEnding)]]);
  const outcomes = await mapConcurrent(records, async (before): Promise<TargetOutcome[]> => {
    const there = before.namespace === namespace ? namespace : knownNamespace(before);
    if (there !== undefined && (await getOrInsert(endings, there, () => isTerminating(deps, there)))) return [];
    const release = () => releasePaths(context, before, mode ?? releaseModeOf(binding, before), new Set());
    const outcome = await attemptAny(deps, binding, release);
    if (outcome instanceof Problem) return [{ record: before, problem: outcome }];
    return outcome.problem === undefined ? [] : [{ record: outcome.record, problem: outcome.problem }];
  });
  return outcomes.flat();
}

/** The result of the work, or why it failed. An unexpected error must not block a binding and its namespace forever. */
async function attemptAny<T>(deps: Dependencies, binding: SecretBinding, work: () => Promise<T>): Promise<T | Problem> {
  try {
    return await attempt(work());
  } catch (error) {
    const described = describeError(error);
    deps.log.warn({ binding: bindingKey(binding), error: described }, "release failed unexpectedly");
    return new Problem("Unavailable", `unexpected ${described.name} during the release; see the controller's log`);
  }
}

/** The spec overrides the record: it may have changed after the last reconcile. */
export function releaseModeOf(binding: SecretBinding, record: TargetStatus): "Retain" | "Remove" {
  const ofKind = binding.spec.targets.filter((target) => isSameKind(target, record));
  const id = recordId(record);
  const named = ofKind.find((each) => !selects(each) && recordId(inNamespace(each, record, binding)) === id);
  const candidates = named ? [named] : ofKind.filter(selects);
  const modes = new Set(candidates.map((each) => onReleaseOf(binding, each, record.created === true)));
  const [mode] = modes;
  return mode !== undefined && modes.size === 1 ? mode : (record.onRelease ?? "Retain");
}

/** A deleted account is not impersonated, although the API server would allow it. */
async function accountProblem(deps: Dependencies, identity: Identity, account: ObjectRef) {
  // Requests as the account report all other failures.
  return (await attempt(getAsController(deps.client, account))) === undefined ? accountNotFound(identity) : undefined;
}

/** A target in the form of a record. For a namespaced kind, the namespace defaults to the binding's. */
function inNamespace({ apiVersion, kind, name, namespace }: Target, record: TargetStatus, binding: SecretBinding) {
  const own = record.namespace === undefined ? undefined : binding.metadata.namespace;
  const where = namespace ?? own;
  return { apiVersion, kind, name: name ?? "", ...(where !== undefined && { namespace: where }) };
}

/**
 * Releases the paths of one record except those in `keep`. Returns the record as it is then. An object that the binding
 * created is released as a whole, and stays if it has a path to keep.
 */
export async function releasePaths(
  context: ReleaseContext,
  recorded: TargetStatus,
  mode: "Retain" | "Remove",
  keep: ReadonlySet<string>,
): Promise<{ record: TargetStatus; released: boolean; problem?: Problem }> {
  const record = credible(recorded);
  const paths = heldPaths(record).filter((path) => !keep.has(path));
  if (paths.length === 0 && !record.created) return { record, released: false };
  const { rejections } = context.deps;
  // A rule that puts the value back may also change the object each time, which would repeat the removal at once.
  const key = `${context.binding.metadata.uid}/${record.uid} removal`;
  const { generation } = context.binding.metadata;
  const removal = revisionOf({ sourceRevisions: [generation, mode, ...paths].join("\n") });
  const before = rejections.reversion(key, removal);
  if (before !== undefined) return { record, released: false, problem: before };
  const restored: string[] = [];
  const work = async () => {
    const ref = await resolveRecorded(record, context.deps.discovery);
    if (ref === undefined) return;
    if (record.created) await releaseCreated(context, ref, record, keep.size > 0 ? "Retain" : mode);
    else restored.push(...(await releaseFields(context, ref, record, mode, paths)));
  };
  const problem = context.account ?? (await attempt(work()));
  if (problem === undefined || (problem.reason === "Forbidden" && (await isDeletedWithNamespace(context, record)))) {
    if (record.created) return { record: withoutOwnership(record), released: true };
    const gone = new Set(paths.filter((path) => !restored.includes(path)));
    const left = releasedRecord(writtenRecord(record, restored), gone, mode);
    if (restored.length === 0) return { record: left, released: true };
    const kept = notRemoved(record, restored);
    rejections.reverted(key, removal, kept);
    return { record: left, released: true, problem: kept };
  }
  // The CRD was deleted after discovery: the retry sees that nothing is left to release.
  if (problem.reason === "KindNotFound") context.deps.discovery.forget(record.apiVersion);
  return { record, released: false, problem };
}

function notRemoved({ kind, namespace, name = "" }: TargetStatus, paths: readonly string[]): Problem {
  const where = describeObject(kind, namespace, name);
  const what = `the API server accepted the removal of ${firstOf(paths, MAX_NAMED)} of ${where} and kept the value, such as by a mutating admission policy or webhook`;
  const fix = `change that rule, or remove the value yourself. ${FIND_RULES.fix}`;
  return new Problem("ReleaseBlocked", { what, fix, command: FIND_RULES.command });
}

/** Returns the paths whose value is still there, although the API server accepted the removal. */
async function releaseFields(
  context: ReleaseContext,
  ref: ObjectRef,
  record: TargetStatus,
  mode: "Retain" | "Remove",
  paths: readonly string[],
): Promise<string[]> {
  const { deps, binding } = context;
  const released = await release(writeAccess(context, ref), {
    uid: record.uid,
    paths,
    written: record.paths ?? [],
    reverted: record.revertedPaths ?? [],
    kept: heldPaths(record).filter((path) => !paths.includes(path)),
    parents: record.parents ?? [],
    mode,
    fieldManager: fieldManagerOf(binding),
    shape: shapeOf(await deps.schemas.of(ref.resource)),
  });
  recordReleaseEvents(context, ref, released);
  return released.restored;
}

async function releaseCreated(
  context: ReleaseContext,
  ref: ObjectRef,
  record: TargetStatus,
  mode: "Retain" | "Remove",
): Promise<void> {
  const access = { client: context.deps.client, identity: context.identity, ref, verbs: verbsFor(true, mode) };
  const ending = await releaseObject(access, creatorOf(context.binding), record, mode);
  if (ending === "gone") return;
  const where = describeRef(ref);
  const [reason, note]: [EventReason, string] =
    ending === "deleted"
      ? ["Removed", `deleted ${where}`]
      : ["Retained", `kept ${where}; this binding no longer owns it`];
  context.deps.events.record(context.binding, { type: "Normal", reason, action: "Release", note });
  context.deps.log.info({ binding: bindingKey(context.binding), target: where }, reason);
}

/** The marks of an object that the binding created. */
export function creatorOf(binding: SecretBinding): Creator {
  return { uid: binding.metadata.uid, fieldManager: fieldManagerOf(binding) };
}

/** One event for each outcome: removed, kept as requested, or kept because the removal is impossible. */
function recordReleaseEvents(
  { deps, binding, retained: notes }: ReleaseContext,
  ref: ObjectRef,
  { removed, retained, shared, blocked, positional, shifted, unproven, denied, restored, denial }: Released,
): void {
  const where = describeRef(ref);
  const record = (type: "Normal" | "Warning", reason: EventReason, paths: string[], done: string, why: string) => {
    if (paths.length === 0) return;
    const note = `${done} ${paths.join(", ")} of ${where}${why}`;
    deps.events.record(binding, { type, reason, action: "Release", note });
    deps.log.info({ binding: bindingKey(binding), target: where, paths }, reason);
  };
  const existing =
    ": the element existed before, its old value is unknown, and later elements would shift; set or remove it yourself";
  const changed =
    ": others have changed the list, or another element has the same keys, so it may be another element now; check it yourself";
  const back = `: the API server accepted the removal and kept the value, such as by a mutating admission policy or webhook. ${FIND_RULES.fix} with: ${FIND_RULES.command}`;
  const unseen =
    ": Inlay did not see whether it wrote them, so the values may be others than the binding's; check them yourself";
  record("Normal", "Removed", removed, "removed", "");
  record("Normal", "Retained", retained, "kept", "; this binding no longer owns them");
  const ofOthers = sharedValues(ref, shared);
  if (ofOthers !== undefined) {
    notes?.push(ofOthers);
    deps.events.record(binding, { type: "Warning", reason: "Retained", action: "Release", note: ofOthers });
    const paths = shared.map(({ path }) => path);
    deps.log.info({ binding: bindingKey(binding), target: where, paths }, "Retained");
  }
  record("Warning", "ReleaseBlocked", blocked, "kept", ": the object is not valid without them");
  if (denial !== undefined) {
    const { fix, command } = howToShow(denial);
    const why = `: ${deniedBy(denial)} denied the removal. ${fix} with: ${command}`;
    record("Warning", "ReleaseBlocked", denied, "kept", why);
  }
  record("Warning", "ReleaseBlocked", restored, "did not remove", back);
  record("Warning", "ReleaseBlocked", unproven, "kept", unseen);
  record("Warning", "ReleaseBlocked", positional, "kept", existing);
  record("Warning", "ReleaseBlocked", shifted, "kept", changed);
}

/** Drops what no binding can have written. Otherwise, a user who edits a status could direct a release at it. */
function credible(record: TargetStatus): TargetStatus {
  if (!isWritableKind(parseApiVersion(record.apiVersion).group, record.kind)) return withoutOwnership(record);
  const forged = heldPaths(record).filter((path) => !isWritablePath(FieldPath.parse(path)));
  return forged.length === 0 ? record : withoutPaths(record, new Set(forged));
}

/**
 * The canonical paths that a target's fields write. Paths that can't be parsed were never written. Cached, because a target may select
 * thousands of objects.
 */
export const pathsOf = oncePerObject(findPaths);

/** A field that copies all data to a ConfigMap also writes its `binaryData`, unless another field does. */
function findPaths(target: Target): Set<string> {
  const { kind } = target;
  const fields = fieldsOfTarget(target);
  const paths = parsePaths(fields.map(({ path }) => path));
  const hasOther = kind === "Secret" || paths.some((path) => path.startsWith(BINARY_DATA));
  const isSplit = !hasOther && fields.some((field) => field.path === "data" && copiesAll(field));
  return new Set([...paths, ...(isSplit ? [BINARY_DATA] : [])].map(String));
}

/** The permissions in a namespace that is being deleted may be gone before the object is. */
async function isDeletedWithNamespace({ deps }: ReleaseContext, record: TargetStatus): Promise<boolean> {
  const namespace = knownNamespace(record);
  return namespace !== undefined && isTerminating(deps, namespace);
}

/**
 * The problem of a selected object, or the end of its namespace if that explains it: the object and the permissions there may be
 * gone first.
 */
export async function orEndOfNamespace({ deps }: ReleaseContext, record: TargetStatus, problem: Problem) {
  const { created, namespace, selected, uid } = record;
  const isKnown = namespace !== undefined && (uid !== undefined || created === true);
  if (!selected || !isKnown || !["Forbidden", "TargetNotFound"].includes(problem.reason)) return problem;
  return (await attempt(stateOf(deps, namespace))) === "Terminating" ? namespaceEnds({ namespace }) : problem;
}

/**
 * The namespace of an object that the binding has read there. For other namespaces, the controller must not reveal
 * whether they exist to an account without permissions there.
 */
const knownNamespace = ({ uid, namespace }: TargetStatus) => (uid === undefined ? undefined : namespace);

/**
 * Whether the namespace is deleted or being deleted: then its objects go anyway, and the account and its permissions may go
 * first.
 */
async function isTerminating(deps: Dependencies, namespace: string): Promise<boolean> {
  const state = await attempt(stateOf(deps, namespace));
  return state === "Terminating" || state === "Gone";
}

/** Unknown for a namespace outside of the installation's scope. */
async function stateOf(
  { client, installation }: Dependencies,
  namespace: string,
): Promise<"Active" | "Terminating" | "Gone" | "Unknown"> {
  const { scope = namespace } = installation;
  if (namespace !== scope) return "Unknown";
  const found = await getAsController(client, { resource: NAMESPACES, name: namespace });
  if (found === undefined) return "Gone";
  return found.metadata.deletionTimestamp === undefined ? "Active" : "Terminating";
}
