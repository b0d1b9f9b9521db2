/** Releases what status records and the spec names no more. Nothing that was ever written is left without a way back. */
import {
  bindingKey,
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
import { describeObject, isSameKind, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { parsePaths } from "../apimachinery/path-overlap.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { EventReason } from "../apimachinery/reasons.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import { releaseObject } from "../apply/create.ts";
import type { Maker } from "../apply/manifest.ts";
import { type Released, release } from "../apply/release.ts";
import { accountNotFound, attempt, verbsFor } from "../kube/access-error.ts";
import { getAsController } from "../kube/get.ts";
import { type Identity, serviceAccountIdentity } from "../kube/identity.ts";
import { describeError } from "../observability/log.ts";
import { shapeOf } from "../transform/target-shape.ts";
import { mapConcurrent } from "../workqueue/map-concurrent.ts";
import { actorOf } from "./actor.ts";
import type { Dependencies, ReleaseContext } from "./dependencies.ts";
import type { TargetOutcome } from "./outcome.ts";
import { withoutOwnership, withoutPaths } from "./record-changes.ts";
import { resolveRecorded } from "./references.ts";

/** How long a deleted binding is held for targets that can't be released, whichever replicas led meanwhile. */
const BEST_EFFORT_MS = 60_000;
/** For how long a leader tries at least: the one before may have stopped long ago, and one failed request is no reason. */
const LEAST_EFFORT_MS = 5_000;

/** Releases what status records and no target of the spec is. The outcomes are of those that could not be yet. */
export async function releaseRemovedTargets(
  context: ReleaseContext,
  named: ReadonlySet<TargetStatus>,
): Promise<TargetOutcome[]> {
  const unnamed = (context.binding.status?.targets ?? []).filter((each) => !named.has(each));
  const outcomes = await mapConcurrent(unnamed, async (before) => {
    const { record, problem } = await releasePaths(context, before, before.onRelease ?? "Retain", new Set());
    // Rights may end with the namespace, and then there is nothing left to release.
    const isOver = problem === undefined || (await wentWithNamespace(context, before));
    return isOver ? [] : [{ record, problem }];
  });
  return outcomes.flat();
}

/**
 * Releases the records of a deleted binding. Returns those to try again: whatever failed, until a minute after the deletion.
 * `since` is when this process found out about it, in ms of the epoch.
 */
export async function releaseDeletedBinding(
  deps: Dependencies,
  binding: SecretBinding,
  records: readonly TargetStatus[],
  since: number,
): Promise<TargetStatus[]> {
  const outcomes = await attemptAny(deps, binding, () => releaseRecords(deps, binding, records));
  const left = outcomes instanceof Problem ? records.map((record) => ({ record, problem: outcomes })) : outcomes;
  const problem = left.at(-1)?.problem;
  if (problem === undefined) return [];
  if (!isTimeUp(deps, binding, since)) return left.map(({ record }) => record);
  const note = `gave up after ${BEST_EFFORT_MS / 1000} s, values may be left: ${problem.message}`;
  deps.events.record(binding, { type: "Warning", reason: "ReleaseAbandoned", action: "Release", note });
  deps.log.warn({ binding: bindingKey(binding), reason: "ReleaseAbandoned" }, note);
  return [];
}

/** Nothing tells when a binding was deleted that had no finalizer: its minute begins when it is found to be gone. */
function isTimeUp({ serverTime }: Dependencies, { metadata }: SecretBinding, since: number): boolean {
  const tried = Date.now() - since;
  if (metadata.deletionTimestamp === undefined) return tried >= BEST_EFFORT_MS;
  // By the clock that set it: ours may be minutes fast or slow.
  return tried >= LEAST_EFFORT_MS && serverTime() - Date.parse(metadata.deletionTimestamp) >= BEST_EFFORT_MS;
}

/** The outcomes of what could not be released. */
async function releaseRecords(
  deps: Dependencies,
  binding: SecretBinding,
  records: readonly TargetStatus[],
): Promise<TargetOutcome[]> {
  const namespace = binding.metadata.namespace as string;
  const identity = serviceAccountIdentity(namespace, binding.spec.serviceAccountName);
  // With a namespace its accounts go too, which nobody meant as a word to Inlay.
  const ending = await attempt(isTerminating(deps, namespace));
  const actor = actorOf(binding, deps.installation);
  const account =
    actor instanceof Problem
      ? actor
      : ending === true
        ? undefined
        : await accountProblem(deps, identity, actor.account);
  const context = { deps, binding, identity, account };
  const endings = new Map([[namespace, Promise.resolve(ending)]]);
  const outcomes = await mapConcurrent(records, async (before): Promise<TargetOutcome[]> => {
    const there = before.namespace === namespace ? namespace : knownNamespace(before);
    const known = there === undefined ? undefined : (endings.get(there) ?? attempt(isTerminating(deps, there)));
    if (there !== undefined && known !== undefined) endings.set(there, known);
    if ((await known) === true) return [];
    const release = () => releasePaths(context, before, releaseModeOf(binding, before), new Set());
    const outcome = await attemptAny(deps, binding, release);
    if (outcome instanceof Problem) return [{ record: before, problem: outcome }];
    return outcome.problem === undefined ? [] : [{ record: outcome.record, problem: outcome.problem }];
  });
  return outcomes.flat();
}

/** What the work returns, or why it failed: a bug of ours must not hold a binding, and its namespace, forever. */
async function attemptAny<T>(deps: Dependencies, binding: SecretBinding, work: () => Promise<T>): Promise<T | Problem> {
  try {
    return await attempt(work());
  } catch (error) {
    const described = describeError(error);
    deps.log.warn({ binding: bindingKey(binding), error: described }, "release failed unexpectedly");
    return new Problem("Unavailable", `unexpected ${described.name} during the release; see the controller's log`);
  }
}

/** The spec goes before the record: it may have been changed and not been acted upon since. */
export function releaseModeOf(binding: SecretBinding, record: TargetStatus): "Retain" | "Remove" {
  const ofKind = binding.spec.targets.filter((target) => isSameKind(target, record));
  const id = recordId(record);
  const named = ofKind.find((each) => !selects(each) && recordId(inNamespace(each, record, binding)) === id);
  const candidates = named ? [named] : ofKind.filter(selects);
  const modes = new Set(candidates.map((each) => onReleaseOf(binding, each, record.created === true)));
  const [mode] = modes;
  return mode !== undefined && modes.size === 1 ? mode : (record.onRelease ?? "Retain");
}

/** A deleted account is not acted as, although the API server would let us. */
async function accountProblem(deps: Dependencies, identity: Identity, account: ObjectRef) {
  // Any other failure is reported by what is tried as the account.
  return (await attempt(getAsController(deps.client, account))) === undefined ? accountNotFound(identity) : undefined;
}

/** A target as records name it: of a namespaced kind, which its record tells, it is in the binding's unless it says. */
function inNamespace({ apiVersion, kind, name, namespace }: Target, record: TargetStatus, binding: SecretBinding) {
  const own = record.namespace === undefined ? undefined : binding.metadata.namespace;
  const where = namespace ?? own;
  return { apiVersion, kind, name: name ?? "", ...(where !== undefined && { namespace: where }) };
}

/**
 * Releases the paths of one record but those to keep. The record comes back as it is then. An object that the binding
 * made is released as a whole, and stays if any of its paths does.
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
  const work = async () => {
    const ref = await resolveRecorded(record, context.deps.discovery);
    if (ref === undefined) return;
    if (record.created) await releaseMade(context, ref, record, keep.size > 0 ? "Retain" : mode);
    else await releaseFields(context, ref, record, mode, paths);
  };
  const problem = context.account ?? (await attempt(work()));
  if (problem === undefined || (problem.reason === "Forbidden" && (await wentWithNamespace(context, record)))) {
    const left = record.created ? withoutOwnership(record) : withoutPaths(record, new Set(paths));
    return { record: left, released: true };
  }
  // Its CRD was deleted since the kind was discovered: the next try finds out, and that there is nothing to release.
  if (problem.reason === "KindNotFound") context.deps.discovery.forget(record.apiVersion);
  return { record, released: false, problem };
}

async function releaseFields(
  context: ReleaseContext,
  ref: ObjectRef,
  record: TargetStatus,
  mode: "Retain" | "Remove",
  paths: readonly string[],
): Promise<void> {
  const { deps, binding, identity } = context;
  const released = await release(deps.client, identity, ref, {
    uid: record.uid,
    paths,
    written: record.paths ?? [],
    kept: heldPaths(record).filter((path) => !paths.includes(path)),
    parents: record.parents ?? [],
    mode,
    fieldManager: fieldManagerOf(binding),
    shape: shapeOf(await deps.schemas.of(ref.resource)),
  });
  recordReleaseEvents(context, ref, released);
}

async function releaseMade(
  context: ReleaseContext,
  ref: ObjectRef,
  record: TargetStatus,
  mode: "Retain" | "Remove",
): Promise<void> {
  const access = { client: context.deps.client, identity: context.identity, ref, verbs: verbsFor(true, mode) };
  const ending = await releaseObject(access, makerOf(context.binding), record, mode);
  if (ending === "gone") return;
  const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const [reason, note]: [EventReason, string] =
    ending === "deleted" ? ["Removed", `deleted ${where}`] : ["Retained", `left ${where} as it is, and gave it up`];
  context.deps.events.record(context.binding, { type: "Normal", reason, action: "Release", note });
  context.deps.log.info({ binding: bindingKey(context.binding), target: where }, reason);
}

/** What says of an object that the binding made it. */
export function makerOf(binding: SecretBinding): Maker {
  return { uid: binding.metadata.uid, fieldManager: fieldManagerOf(binding) };
}

/** One event for each thing that became of values: gone, left by wish, left because they must. */
function recordReleaseEvents(
  { deps, binding }: ReleaseContext,
  ref: ObjectRef,
  { removed, retained, blocked, positional, shifted }: Released,
): void {
  const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const record = (type: "Normal" | "Warning", reason: EventReason, paths: string[], done: string, why: string) => {
    if (paths.length === 0) return;
    const note = `${done} ${paths.join(", ")} of ${where}${why}`;
    deps.events.record(binding, { type, reason, action: "Release", note });
    deps.log.info({ binding: bindingKey(binding), target: where, paths }, reason);
  };
  const standing =
    ": it stood there before, with a value that is not known, and the elements after it would shift; set it or remove it yourself";
  const changed = ": others changed the list since, so what is there now may not be this binding's";
  record("Normal", "Removed", removed, "removed", "");
  record("Normal", "Retained", retained, "left", " as they are, and gave them up");
  record("Warning", "ReleaseBlocked", blocked, "left", ": the object is not valid without");
  record("Warning", "ReleaseBlocked", positional, "left", standing);
  record("Warning", "ReleaseBlocked", shifted, "left", changed);
}

/** Without what no binding can have written: whoever could edit a status would else steer a release there. */
function credible(record: TargetStatus): TargetStatus {
  if (!isWritableKind(parseApiVersion(record.apiVersion).group, record.kind)) return withoutOwnership(record);
  const forged = heldPaths(record).filter((path) => !isWritablePath(FieldPath.parse(path)));
  return forged.length === 0 ? record : withoutPaths(record, new Set(forged));
}

/** A target may be of thousands of objects. */
const knownPaths = new WeakMap<Target, ReadonlySet<string>>();

/** The canonical paths of a target's fields; one that can't be parsed was never written. */
export function pathsOf(target: Target): ReadonlySet<string> {
  const known = knownPaths.get(target) ?? new Set(parsePaths(target.fields.map(({ path }) => path)).map(String));
  knownPaths.set(target, known);
  return known;
}

/** The rights in a namespace that is being deleted may have gone before the object, or with it. */
async function wentWithNamespace({ deps }: ReleaseContext, record: TargetStatus): Promise<boolean> {
  const namespace = knownNamespace(record);
  return namespace !== undefined && (await attempt(isTerminating(deps, namespace))) === true;
}

/**
 * The namespace of an object that the binding has seen there. The controller says of no other whether it exists: an account
 * without permissions there would learn it.
 */
const knownNamespace = ({ uid, namespace }: TargetStatus) => (uid === undefined ? undefined : namespace);

/**
 * With its namespace, an object goes anyway, and the account and its rights may have gone before it. Of a namespace that
 * this installation is not for, it is not known.
 */
async function isTerminating({ client, installation }: Dependencies, namespace: string): Promise<boolean> {
  const { scope = namespace } = installation;
  if (namespace !== scope) return false;
  const ref = { resource: NAMESPACES, name: namespace };
  const found = await getAsController(client, ref);
  return found === undefined || found.metadata.deletionTimestamp !== undefined;
}
