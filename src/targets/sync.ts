/** Syncs one target of a binding: decides what to write, from its fields and sources, and writes it. */
import { type Field, modeOf, onConflictOf, onReleaseOf, type Target, type TargetStatus } from "../api/binding.ts";
import { fieldManagerOf } from "../api/field-manager.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import { describeRef, type KubeObject, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { allIn, Problem, throwFirst } from "../apimachinery/problem.ts";
import { type Decision, type Desired, decide, recordedPaths } from "../apply/decide.ts";
import { pathByKeys } from "../apply/forms.ts";
import { decideByLastApplied, digestOf, type LastApplied, lastAppliedObject } from "../apply/last-applied.ts";
import { readTarget, writeTarget } from "../apply/write.ts";
import { attempt } from "../kube/access-error.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { BINARY_DATA, missingOf, noteOf, type Recipe } from "../transform/plan.ts";
import type { Plan, ReadableCopies } from "../transform/plan-types.ts";
import { assertAcknowledged, readableCopies } from "../transform/readable-copies.ts";
import { schemaIn } from "../transform/schema-check.ts";
import { shapeOf } from "../transform/target-shape.ts";
import { contentionProblem, writeWithinBudget } from "./contention.ts";
import {
  decideObject,
  failed,
  isCreatedOnce,
  onceNote,
  type PreparedObject,
  prepareObject,
  syncObject,
} from "./create.ts";
import { type SyncContext, type WriteContext, writeAccess } from "./dependencies.ts";
import { checkEntry, evaluate, planIn, problemsOfEntry } from "./evaluate.ts";
import type { TargetOutcome } from "./outcome.ts";
import { appliedRecord, intentRecord, ofRevision, revertedRecord, withoutAwaited } from "./record-changes.ts";
import type { TargetWithRecord } from "./records.ts";
import { explainFields } from "./rejection.ts";
import { orEndOfNamespace, pathsOf, releasePaths } from "./release.ts";
import { normalizedIn, Reversion, revisionOf } from "./reverted.ts";

/** `record` is the status of the target if the controller stops before the sync. */
export type PreparedTarget =
  | Ready
  | PreparedObject
  | { record: TargetStatus; problem: Problem }
  | { record: TargetStatus; note: string };

interface Ready {
  record: TargetStatus;
  ref: ObjectRef;
  live: KubeObject;
  /** Set if the target was not read. */
  lastApplied?: LastApplied;
  desired: Desired;
  decision: Decision;
}

/**
 * Decides what to write, and releases what the target's fields no longer name. `blocked` says why the target can't be
 * written. Mistakes in the binding itself are reported first, and then nothing is released.
 */
export async function prepareTarget(
  context: WriteContext,
  { target, ref, record: before }: TargetWithRecord,
  sources: ReadonlyMap<string, LiveSource | Problem>,
  blocked: Problem | undefined,
): Promise<PreparedTarget> {
  const creates = target.create !== undefined;
  const onRelease = onReleaseOf(context.binding, target, creates && before.created === true);
  const named = { ...withoutAwaited(before), apiVersion: target.apiVersion, onRelease };
  if (creates && isCreatedOnce(context.binding, target, before)) return { record: named, note: onceNote(target) };
  const found = await attempt(examine(context, target, ref, before, sources, blocked));
  if (creates && found instanceof Problem) return { record: named, problem: found };
  if (found instanceof Problem && allIn(found).some(isMistake)) return { record: named, problem: found };
  if (creates && !(found instanceof Problem)) return prepareObject(context, target, found, named);
  const { record, released, problem } = await releaseDropped(context, named, target, found);
  if (problem) return { record, problem };
  if (found instanceof Problem) return { record, problem: found };
  const missing = missingOf(found.plan) ?? (writesAnything(found.plan) ? context.sourceMismatch : undefined);
  if (missing) return { record, problem: missing };
  const decided = await attempt(decideTarget(context, target, found, record, released));
  return decided instanceof Problem ? { record, problem: decided } : decided;
}

/** The decision for the target after the release of fields that it no longer names. Throws Problem. */
async function decideTarget(
  context: SyncContext,
  target: Target,
  { ref, plan, shape, live, lastApplied }: Examined,
  record: TargetStatus,
  released: boolean,
): Promise<Ready> {
  const { binding } = context;
  const desired = { plan, shape, fieldManager: fieldManagerOf(binding), onConflict: onConflictOf(binding, target) };
  const decision = lastApplied && decideByLastApplied(desired, record, lastApplied);
  if (decision) return { record, ref, live: lastAppliedObject(ref, lastApplied), lastApplied, desired, decision };
  return decideOn(context, ref, desired, record, released ? undefined : live);
}

/** The decision for a target as it was read, or for the current one. Throws Problem. */
async function decideOn(
  context: SyncContext,
  ref: ObjectRef,
  desired: Desired,
  record: TargetStatus,
  read?: KubeObject,
): Promise<Ready> {
  const live = read ?? (await readTarget(writeAccess(context, ref)));
  const decision = decide(desired, live, ofRevision(record, revisionOf(context)));
  return { ref, live, desired, decision, record: intentRecord(record, live, desired, decision) };
}

type Examined = Awaited<ReturnType<typeof examine>>;

/**
 * Plans a target, checks the plan against the schema, and reads the target, except an object that the binding creates, which may not exist,
 * and one with `lastApplied`. Throws Problem.
 */
export async function examine(
  context: WriteContext,
  target: Target,
  ref: ObjectRef | Problem,
  record: TargetStatus,
  sources: ReadonlyMap<string, LiveSource | Problem>,
  blocked: Problem | undefined,
) {
  const { deps, binding, sourceMismatch, seenVersion, secretNamespaces, planning } = context;
  const entry = await planning.check(target, () => checkEntry(target, sources.keys()));
  throwFirst(problemsOfEntry(entry));
  if (blocked) throw blocked;
  if (ref instanceof Problem) throw ref;
  const written = await deps.schemas.of(ref.resource);
  // Values must match the version that the binding names, even if another one is written.
  const { version } = parseApiVersion(target.apiVersion);
  const schema = version === ref.resource.version ? written : await deps.schemas.of({ ...ref.resource, version });
  const read = () => attempt(readTarget(writeAccess(context, ref), seenVersion(ref)));
  const once = modeOf(binding, target) === "Once" && !target.create ? await read() : undefined;
  const kept = once && (once instanceof Problem ? [] : writtenOnce(target, record, once));
  const recipes = entry.recipes as readonly Recipe[];
  const isDue = ({ path }: Field) => !kept?.some((each) => each.equals(FieldPath.parse(path)));
  const schemaAt = schema && schemaIn(schema.root, schema.resolve);
  const findCopies = () => readableCopies(binding, secretNamespaces, recipes, ref, schemaAt);
  const readable = await planning.copies(target, ref.namespace, findCopies);
  const isReadable = ({ path }: Recipe) => readable?.paths.includes(String(path));
  if (recipes.some((each) => isReadable(each) && isDue(each.field)))
    assertAcknowledged(binding, readable, deps.installation);
  const make = () => planIn(evaluate(entry, sources, schema, isDue));
  const planned = kept ? await planning.alone(make) : await planning.plan(target, make);
  const copies = readable && withParts(readable, planned);
  const plan: Plan = { ...planned, ...(kept && { kept }), ...(copies && { readable: copies }) };
  // If the sources don't belong together, nothing is removed either.
  if (writesAnything(plan) && sourceMismatch?.reason === "SourceAnnotationMismatch") throw sourceMismatch;
  const lastApplied = target.create || once ? undefined : context.lastApplied(target, ref);
  const live = target.create || lastApplied ? undefined : (once ?? (await read()));
  if (live instanceof Problem) throw missingOf(plan) ?? live;
  return { ref, plan, shape: shapeOf(written), live, lastApplied };
}

/** A copy to a ConfigMap is as readable in its `binaryData`. */
function withParts(readable: ReadableCopies, { fields }: Plan): ReadableCopies {
  const isSplit = readable.paths.includes("data") && fields.some(({ path }) => path.equals(BINARY_DATA));
  return isSplit ? { ...readable, paths: [...new Set([...readable.paths, String(BINARY_DATA)])] } : readable;
}

/** The fields that the binding owns in this very object, by the record. */
function writtenOnce(target: Target, record: TargetStatus, live: KubeObject): FieldPath[] {
  const named = pathsOf(target);
  return recordedPaths(record, live).flatMap((path) => (named.has(path) ? [FieldPath.parse(path)] : []));
}

/** Whether there is anything to write, now or later. */
function writesAnything({ fields, omitted }: Plan): boolean {
  return fields.length + omitted.length > 0;
}

/**
 * Releases what the target's fields no longer name, and removes fields whose value is missing if onMissing is Remove.
 */
async function releaseDropped(context: SyncContext, before: TargetStatus, target: Target, found: Examined | Problem) {
  const named = pathsOf(target);
  const kept = await releasePaths(context, before, onReleaseOf(context.binding, target), named);
  if (kept.problem || found instanceof Problem) return kept;
  const gone = found.plan.omitted
    .filter(({ why }) => why.policy.onMissing === "Remove")
    .map(({ path }) => String(path));
  const emptied = found.plan.emptied?.map(String) ?? [];
  const remaining = new Set([...named].filter((path) => !gone.includes(path) && !emptied.includes(path)));
  const removed = await releasePaths(context, kept.record, "Remove", remaining);
  return { ...removed, released: kept.released || removed.released };
}

/** Whether the problem is a mistake in the binding: a broken edit must not remove earlier values. */
function isMistake({ retryPolicy, reason }: Problem): boolean {
  return retryPolicy === "Terminal" || reason === "UnknownField" || reason === "TypeMismatch";
}

const CONTENTION =
  "changing the fields of this binding, so Inlay corrects them less and less often. Remove the fields from what the other manager applies, or from this binding";
/** How often a decision is repeated within one sync because others write the target. */
const MAX_TRIES = 5;

/** Writes a prepared target, unless nothing differs or contention forbids it now. */
export async function syncTarget(context: SyncContext, prepared: PreparedTarget): Promise<TargetOutcome> {
  let next = prepared;
  for (let tries = 1; ; tries++) {
    if ("problem" in next) return failed(next.record, await orEndOfNamespace(context, next.record, next.problem));
    if ("note" in next) return next;
    const outcome = "whole" in next ? await syncObject(context, next) : await syncFields(context, next);
    if (outcome !== "stale") return outcome;
    const changing = changesTooFast("whole" in next ? "object" : "target");
    if (tries === MAX_TRIES) return { record: next.record, problem: changing };
    next = "whole" in next ? await decideObjectAgain(context, next) : await decideAgain(context, next);
  }
}

async function syncFields(context: SyncContext, prepared: Ready): Promise<TargetOutcome | "stale"> {
  const { ref, live, desired, decision } = prepared;
  const contender = `${context.binding.metadata.uid}/${live.metadata.uid}`;
  const written = decision.write ? await writeWithinBudget(context, fieldWrite(context, prepared, contender)) : live;
  if (written === "stale") return written;
  if (written instanceof Reversion)
    return { record: revertedRecord(prepared.record, live, desired, decision, written.unchanged), problem: written };
  if (written instanceof Problem)
    return { record: prepared.record, problem: await explainFields(context, prepared, written) };
  const contention = contentionProblem(context, contender, CONTENTION);
  if (typeof written === "number") return { record: prepared.record, ...contention, requeueAfterMs: written };
  const { normalizedFor } = prepared.record;
  const form = decision.write ? normalizedIn(context, answered(prepared), written) : normalizedFor;
  const record = appliedRecord(prepared.record, live, desired, decision, form);
  return { record, ...noteOf(desired.plan), applied: appliedVersion(ref, written, desired), ...contention };
}

/** What the answer of a write is compared with. */
function answered({ ref, live, lastApplied, record, decision, desired: { fieldManager, shape } }: Ready) {
  const fields = decision.fields.map(({ path, place, value }) => ({ path, value, at: pathByKeys(path, place) }));
  return { ref, live, lastApplied, record, fields, fieldManager, shape };
}

function fieldWrite(context: SyncContext, prepared: Ready, contender: string) {
  const { ref, live, desired, decision } = prepared;
  const paths = desired.plan.fields.map(({ path }) => String(path));
  const note = [`wrote ${paths.join(", ")} of ${describeRef(ref)}`, ...decision.warnings].join("; ");
  return {
    contender,
    write: answered(prepared),
    decision,
    event: { reason: "Written" as const, note },
    log: { message: "wrote", paths },
    send: () => writeTarget(writeAccess(context, ref), desired, decision, live),
  };
}

/** Decides again for the current target. The record that the status already has must stay true before a write. */
async function decideAgain(context: SyncContext, { record, ref, desired }: Ready): Promise<PreparedTarget> {
  const again = await attempt(decideOn(context, ref, desired, record));
  if (again instanceof Problem) return { record, problem: again };
  return !again.decision.write || sameJson(again.record, record)
    ? again
    : { record, problem: changesTooFast("target") };
}

/**
 * Decides again for an object that the binding creates. A creation or adoption that the status does not announce waits
 * for the next reconcile: if the binding changed at that moment, nothing would release the object.
 */
async function decideObjectAgain(context: SyncContext, { wanted, record }: PreparedObject): Promise<PreparedTarget> {
  const again = await decideObject(context, wanted, record);
  const isUnannounced = "whole" in again && again.isNew && !sameJson(again.record, record);
  return isUnannounced ? { record, problem: changesTooFast("object") } : again;
}

const changesTooFast = (what: string) =>
  new Problem("Unavailable", `the ${what} changes faster than it can be written; Inlay retries`);

function appliedVersion(ref: ObjectRef, { metadata }: KubeObject, desired: Desired) {
  const { uid, resourceVersion, generation } = metadata;
  const values = digestOf(desired);
  return { ref, version: { uid, resourceVersion, generation }, ...(values !== undefined && { values }) };
}
