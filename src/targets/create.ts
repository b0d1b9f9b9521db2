/**
 * Syncs a target that the binding creates: creates the object when all values exist, corrects it when it differs, and
 * creates it again after a deletion. Adopts or ignores an object that the binding did not create, as the target says.
 */
import {
  manifestOf,
  modeOf,
  onReleaseOf,
  recreates,
  type SecretBinding,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import {
  apiVersionOf,
  describeRef,
  type JsonValue,
  type KubeObject,
  type ObjectRef,
  plainWord,
} from "../apimachinery/objects.ts";
import { attemptSync, Problem, UnintendedTarget } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { type Adoption, adoptObject } from "../apply/adopt.ts";
import { changesImmutable, correctObject, createObject, deleteObject, isApplied } from "../apply/create.ts";
import { assertUnique } from "../apply/duplicates.ts";
import {
  decideWholeByLastApplied,
  type LastApplied,
  lastAppliedObject,
  wasSent,
  wholeDigestOf,
} from "../apply/last-applied.ts";
import { type Creator, composeWhole, decideWhole, fieldsByKeys, isCreatedBy, type Whole } from "../apply/manifest.ts";
import { unwantedKeys } from "../apply/unwanted-keys.ts";
import { attempt } from "../kube/access-error.ts";
import { assertMay, getIfExists } from "../kube/get.ts";
import { missingOf, noteOf } from "../transform/plan.ts";
import type { Plan, PlannedField } from "../transform/plan-types.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { inheritedType, isSecret, namesType, OPAQUE, TYPE } from "../transform/whole-copy.ts";
import { adoptMode, assertBindingExists, decideAdoption, noteOnOthers } from "./adopt.ts";
import { contentionProblem, writeWithinBudget } from "./contention.ts";
import { type SyncContext, targetAccess } from "./dependencies.ts";
import type { TargetOutcome } from "./outcome.ts";
import { createdRecord, ofRevision, withoutOwnership } from "./record-changes.ts";
import { explainObject } from "./rejection.ts";
import { creatorOf, pathsOf } from "./release.ts";
import { normalizedIn, revisionOf } from "./reverted.ts";

/** The object that the spec and the sources describe, whatever is in the cluster. */
interface Wanted {
  target: Target;
  ref: ObjectRef;
  plan: Plan;
  shape: TargetShape;
  /** Why values are missing. */
  missing: Problem | undefined;
}

/** `record` is the status of the target if the controller stops before the sync. */
export interface PreparedObject {
  record: TargetStatus;
  /** The status does not say yet that the binding may have created the object. */
  isNew: boolean;
  wanted: Wanted;
  /** Undefined if the object does not exist. */
  live: KubeObject | undefined;
  /** Set if the object was not read. */
  lastApplied?: LastApplied;
  whole: Whole;
  decision: { write: boolean; takenBy: string[] };
  /** The adoption of an object that the binding did not create. */
  adoption?: Adoption;
  /** The object is deleted and created again, because something must change that can't change. */
  recreates?: true;
  /** What stays as it is, although its source has something else. */
  kept?: string;
  /** Milliseconds until contention permits the creation. The status does not announce it until then. */
  putOffMs?: number;
}

export const onceNote = ({ create }: Target) =>
  `${create?.adopt === undefined ? "created" : "created or adopted"} once, and not changed again (mode: Once)`;

/** How often a decision is repeated within one sync because others change the object. */
const MAX_TRIES = 5;

/** Whether the target is complete, even if the object is gone: a run that was pruned must not run again. */
export function isCreatedOnce(binding: SecretBinding, target: Target, { created, uid }: TargetStatus): boolean {
  return modeOf(binding, target) === "Once" && created === true && uid !== undefined;
}

interface Failed {
  record: TargetStatus;
  problem: Problem;
}

/** Decides what to create or correct. */
export async function prepareObject(
  context: SyncContext,
  target: Target,
  { ref, plan, shape }: Pick<Wanted, "ref" | "plan" | "shape">,
  record: TargetStatus,
): Promise<PreparedObject | Failed> {
  const wanted = { target, ref, plan, shape, missing: missingOf(plan) ?? context.sourceMismatch };
  const unread = attemptSync(() => {
    assertNoSource(context, ref);
    return decideWithoutRead(context, wanted, record);
  });
  if (unread instanceof Problem) return { record, problem: unread };
  return unread ?? decideObject(context, wanted, record, context.seenVersion(ref));
}

/** Throws Problem for an object that the binding reads. */
function assertNoSource({ parsedSources }: SyncContext, ref: ObjectRef): void {
  if (!parsedSources.some((source) => source.isObject(ref))) return;
  const what = `${apiVersionOf(ref.resource)} ${describeRef(ref)}`;
  throw new UnintendedTarget("InvalidBinding", `${what} is a source of this binding, so the binding can't create it`);
}

/** The decision for an object that is as this binding last applied it; undefined if it must be read. Throws Problem. */
function decideWithoutRead(context: SyncContext, wanted: Wanted, record: TargetStatus): PreparedObject | undefined {
  const { target, ref, plan, missing } = wanted;
  const isPlain = missing === undefined && plan.omitted.length === 0;
  const last = isPlain ? context.lastApplied(target, ref) : undefined;
  if (last === undefined) return undefined;
  const whole = compose(context, wanted, plan.fields);
  const decision = decideWholeByLastApplied(whole, ref, record, last);
  // Only the object itself shows whether it must be created again, or keeps another type.
  const type = inheritedType(target, plan.fields);
  const isOther = type !== undefined && !wasSent(last, TYPE, type.value.reveal());
  if (decision?.write && (recreates(target) || isOther)) return undefined;
  if (decision?.write) assertApplicable(wanted, whole);
  const live = lastAppliedObject(ref, last);
  return decision && { record, isNew: false, wanted, live, lastApplied: last, whole, decision };
}

const compose = ({ binding }: SyncContext, { target, ref, shape }: Wanted, fields: readonly PlannedField[]): Whole => ({
  ...composeWhole(manifestOf(target), fields, creatorFor(binding, ref, onReleaseOf(binding, target)), shape),
  ...(target.create?.exact && { isExact: true }),
});

/** Throws Problem if an apply of the object would merge elements of lists into one, or is not possible. */
const assertApplicable = ({ shape }: Wanted, { object }: Whole, live?: KubeObject) =>
  assertUnique(new FieldPath([]), object, live, shape);

/** The decision for the current object. */
export async function decideObject(
  context: SyncContext,
  wanted: Wanted,
  record: TargetStatus,
  seen?: string,
): Promise<PreparedObject | Failed> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const outcome = await attempt(decideOn(context, wanted, record, tries === 1 ? seen : undefined));
    if (outcome !== "stale") return outcome instanceof Problem ? { record, problem: outcome } : outcome;
  }
  const message = "the object changes faster than it can be adopted; Inlay retries";
  return { record, problem: new Problem("Unavailable", message) };
}

/** Throws Problem. */
async function decideOn(
  context: SyncContext,
  wanted: Wanted,
  record: TargetStatus,
  seen?: string,
): Promise<PreparedObject | Failed | "stale"> {
  const { target, ref, plan, missing } = wanted;
  const live = await getIfExists(targetAccess(context, wanted), seen);
  const onRelease = onReleaseOf(context.binding, target);
  const isNew = record.created !== true;
  if (live === undefined) {
    if (missing) throw missing;
    // After a deletion, the status must announce the new object before the creation.
    const prepared = {
      wanted,
      live,
      whole: compose(context, wanted, plan.fields),
      decision: { write: true, takenBy: ["another client"] },
    };
    // Only later corrections are applies.
    if (modeOf(context.binding, target) !== "Once") assertApplicable(wanted, prepared.whole);
    // An earlier creation may have succeeded without an answer.
    if (!isNew && record.uid === undefined)
      return { ...prepared, record: { ...record, adopted: false, onRelease }, isNew };
    // Until its uid is recorded, the label alone identifies the object. So the status announces it only when the
    // creation is permitted now.
    await assertMay(targetAccess(context, wanted), "create");
    const { uid: _, ...former } = record;
    const none = { ...withoutOwnership(record), onRelease };
    const announced = { ...(isNew ? none : former), created: true, adopted: false, onRelease };
    return announcing(context, prepared, none, announced);
  }
  if (!isCreatedBy(context.binding.metadata.uid, live, record)) return decideOnOther(context, wanted, record, live);
  if (live.metadata.deletionTimestamp !== undefined) {
    const described = `${apiVersionOf(ref.resource)} ${describeRef(ref)}`;
    throw new Problem("TargetNotFound", `${described} is being deleted; Inlay creates it again after the deletion`);
  }
  const same = record.uid === live.metadata.uid && !isNew ? record : withoutOwnership(record);
  const { adopted } = record;
  const intent = {
    ...same,
    created: true,
    ...(adopted !== undefined && { adopted }),
    uid: live.metadata.uid,
    onRelease,
  };
  const mayRecreate = recreates(target) && adopted === false;
  const isOnce = isCreatedOnce(context.binding, target, intent);
  const known = ofRevision(same, revisionOf(context));
  const made = isOnce ? plan.fields : fieldsFor(wanted, live, same);
  const { fields, kept } = isOnce || mayRecreate ? { fields: made } : withKnownType(wanted, live, made, same);
  const whole = compose(context, wanted, fields);
  const decision = isOnce ? { write: false, takenBy: [] } : decideExactly(whole, live, known, wanted.shape);
  if (decision.write) assertApplicable(wanted, whole, live);
  const prepared = { wanted, live, whole, decision, ...(kept !== undefined && { kept }) };
  const isImmutable =
    decision.write && mayRecreate && (await changesImmutable(targetAccess(context, wanted), whole, live));
  if (isImmutable === "stale") return isImmutable;
  return isImmutable ? decideRecreation(context, prepared, intent) : { record: intent, isNew, ...prepared };
}

/** Also removes keys that the binding does not write, if the object is exact. */
function decideExactly(whole: Whole, live: KubeObject, record: TargetStatus, shape: TargetShape) {
  const { write, takenBy } = decideWhole(whole, live, record, shape);
  const unwanted = whole.isExact ? unwantedKeys(live, whole).filter(({ stays }) => stays) : [];
  return {
    write: write || unwanted.length > 0,
    takenBy: [...new Set([...takenBy, ...unwanted.flatMap(({ others }) => others)])],
  };
}

/**
 * Announces the new object before the deletion of the old one, so that it is created whatever happens in between. Deletes
 * nothing if the API server would refuse the new object. Throws Problem.
 */
async function decideRecreation(
  context: SyncContext,
  prepared: Pick<PreparedObject, "wanted" | "live" | "whole" | "decision">,
  record: TargetStatus,
): Promise<PreparedObject | "stale"> {
  const { wanted, whole } = prepared;
  const access = targetAccess(context, wanted);
  const isTaken = (await createObject(access, whole, true)) === "stale";
  // The name is taken as long as the old object exists.
  if (!isTaken) return "stale";
  const { uid: _, ...announced } = record;
  return announcing(context, { ...prepared, recreates: true }, record, announced);
}

/** With the record that announces the new object, as soon as contention permits it; until then, with the one before. */
function announcing(
  { deps, binding, sourceRevisions, sourceUids }: SyncContext,
  prepared: Omit<PreparedObject, "record" | "isNew">,
  before: TargetStatus,
  announced: TargetStatus,
): PreparedObject {
  const contender = contenderFor(binding, prepared.wanted.ref);
  const putOffMs = deps.contention.mayWrite(contender, sourceRevisions, prepared.decision.takenBy, sourceUids);
  return putOffMs > 0
    ? { ...prepared, record: before, isNew: false, putOffMs }
    : { ...prepared, record: announced, isNew: true };
}

/** A type that the binding does not name can't change on an object that stays, and the values matter more. */
function withKnownType(
  { target, ref }: Wanted,
  live: KubeObject,
  fields: readonly PlannedField[],
  { paths = [] }: TargetStatus,
): { fields: readonly PlannedField[]; kept?: string } {
  const inherited = inheritedType(target, fields);
  const wasInherited = isSecret(target) && !namesType(target) && paths.includes(String(TYPE));
  const there = (live["type"] as string | undefined) ?? OPAQUE;
  const type = String(inherited?.value.reveal() ?? OPAQUE);
  if ((inherited === undefined && !wasInherited) || type === there) return { fields };
  const kept = `${describeRef(ref)} keeps the type ${plainWord(there)}, which can't be changed, and would now be created with the type ${plainWord(type)}; delete it so that this binding creates it again, or set create.manifest.type: ${plainWord(there)}`;
  const others = fields.filter((field) => field !== inherited);
  const value = new SecretValue<JsonValue>(there);
  return { fields: [...others, { path: TYPE, fromSecret: false, value }], kept };
}

/** For an object that others created. Nothing is recorded as owned unless the adoption is about to happen. */
async function decideOnOther(
  context: SyncContext,
  wanted: Wanted,
  record: TargetStatus,
  live: KubeObject,
): Promise<PreparedObject | Failed | "stale"> {
  const { target, ref, plan, missing } = wanted;
  const decide = async () => {
    const mode = adoptMode(target, ref, live);
    if (missing) throw missing;
    const whole = compose(context, wanted, plan.fields);
    assertApplicable(wanted, whole, live);
    return { whole, adoption: await decideAdoption(context, mode, targetAccess(context, wanted), live, whole) };
  };
  const decided = await attempt(decide());
  if (decided instanceof Problem)
    return { record: record.created ? withoutOwnership(record) : record, problem: decided };
  const { whole, adoption } = decided;
  if (adoption === "stale") return adoption;
  const decision = { write: true, takenBy: ["another client"] };
  const prepared = { wanted, live, whole, decision, adoption };
  const none = { ...withoutOwnership(record), onRelease: onReleaseOf(context.binding, target) };
  // The status must announce the adoption, like a creation: then the label shows whether it happened.
  return announcing(context, prepared, none, { ...none, created: true, adopted: true });
}

/** The key for counting contention over an object, which need not exist. */
const contenderFor = ({ metadata }: SecretBinding, ref: ObjectRef) =>
  `${metadata.uid}/${ref.resource.group}/${describeRef(ref)}`;

/**
 * The values for the object. Fields that wait for a value keep their current one. If a required value is missing, all
 * fields do, except those to remove. Throws Problem if there is none to remove.
 */
function fieldsFor({ target, plan, missing }: Wanted, live: KubeObject, { paths = [] }: TargetStatus): PlannedField[] {
  const isOurs = (path: FieldPath) => paths.includes(String(path));
  const asItIs = (path: FieldPath): PlannedField[] => {
    const value = isOurs(path) ? (path.get(live) as JsonValue | undefined) : undefined;
    return value === undefined ? [] : [{ path, value: new SecretValue(value), fromSecret: true, append: true }];
  };
  const omitted = (onMissing: string) =>
    plan.omitted.filter(({ why }) => why.policy.onMissing === onMissing).map(({ path }) => path);
  // Without its source, a copy keeps what it took from there.
  const isCopyOmitted = plan.omitted.some(({ path }) => String(path) === "data");
  const inherited = isCopyOmitted ? paths.filter((path) => !pathsOf(target).has(path)) : [];
  const waiting = [...omitted("Wait"), ...inherited.map((path) => FieldPath.parse(path))].flatMap(asItIs);
  if (missing === undefined) return [...plan.fields, ...waiting];
  if (!omitted("Remove").some(isOurs)) throw missing;
  return [...plan.fields.flatMap(({ path }) => asItIs(path)), ...waiting];
}

/** Creates or corrects the object, unless nothing differs or contention forbids it now. */
export async function syncObject(context: SyncContext, prepared: PreparedObject): Promise<TargetOutcome | "stale"> {
  const { binding } = context;
  const { wanted, live, whole, decision, adoption, kept } = prepared;
  const { target, ref, plan, missing } = wanted;
  const where = describeRef(ref);
  const contender = contenderFor(binding, ref);
  const access = targetAccess(context, wanted);
  const adopt = async (live: KubeObject, adoption: Adoption) => {
    await assertBindingExists(context);
    return adoptObject(access, live, adoption, whole.creator.fieldManager);
  };
  let isDeleted = false;
  const recreate = async (live: KubeObject) => {
    if ((await deleteObject(access, live)) === "stale") return "stale";
    isDeleted = true;
    return createObject(access, whole);
  };
  const { reason, note, send } =
    live === undefined
      ? { reason: "Created" as const, note: `created ${where}`, send: () => createObject(access, whole) }
      : adoption !== undefined
        ? { reason: "Adopted" as const, note: `adopted ${where}`, send: () => adopt(live, adoption) }
        : prepared.recreates
          ? { reason: "Created" as const, note: `deleted ${where}, and created it again`, send: () => recreate(live) }
          : { reason: "Written" as const, note: `corrected ${where}`, send: () => correctObject(access, whole, live) };
  const { shape } = wanted;
  const fields = fieldsByKeys(whole, shape);
  const { record, lastApplied } = prepared;
  const answered = { ref, live, lastApplied, record, fields, fieldManager: whole.creator.fieldManager, shape };
  const write = {
    contender,
    write: answered,
    decision,
    send,
    event: { reason, note },
    log: { message: note },
  };
  const isDue = live === undefined || decision.write;
  const written = prepared.putOffMs ?? (isDue ? await writeWithinBudget(context, write) : live);
  if (written === "stale") return written;
  if (written instanceof Problem) {
    const object = { ref, whole, manifest: manifestOf(target), shape };
    const problem = await explainObject(context, object, written);
    const isGone = isDeleted || (live === undefined && recreates(target) && record.manifestDigest !== undefined);
    if (!isGone) return failed(record, problem);
    const gone = problem.within(`${where} is deleted, and can't be created again yet`);
    return failed(record, gone.with({ note: "Inlay retries", retryPolicy: "Backoff" }));
  }
  const isOnce = modeOf(binding, target) === "Once";
  const contention = `changing or deleting ${where}, which this binding created, so Inlay corrects it less and less often. Stop that client, or remove the target from this binding`;
  const others = live === undefined ? [] : noteOnOthers(target, ref, live, whole);
  const ofPlan = noteOf(plan);
  const notes = [ofPlan.note ?? [], others, kept ?? []].flat();
  const common = {
    ...ofPlan,
    ...(notes.length > 0 && { note: notes.join("; ") }),
    ...(isOnce && { note: onceNote(target) }),
    ...contentionProblem(context, contender, contention),
    ...(missing && !isOnce && { problem: missing }),
  };
  if (typeof written === "number") return { record, ...common, requeueAfterMs: written };
  const { uid, resourceVersion, generation } = written.metadata;
  // An object is read before the next write if it was only posted, lacks values, or has keys of others to report.
  const isKnown = others.length === 0 && kept === undefined;
  const hasAll = missing === undefined && plan.omitted.length === 0 && isKnown;
  const isWhole = hasAll && isApplied(written, whole.creator.fieldManager);
  const values = isWhole ? { values: wholeDigestOf(whole, ref) } : {};
  const applied = { ref, version: { uid, resourceVersion, generation }, ...values };
  const form = isDue ? normalizedIn(context, answered, written) : record.normalizedFor;
  return { record: createdRecord(record, written, whole, form), applied, ...common };
}

/** When to retry for objects that Inlay does not watch, such as a listed namespace. */
const RETRY_MS = 30_000;

/**
 * The outcome of a failed target. For a selected object that the selection can't have meant, only a note, or its exclusion while
 * its namespace is being deleted.
 */
export function failed(record: TargetStatus, problem: Problem): TargetOutcome {
  if (!record.selected || !(problem instanceof UnintendedTarget)) return { record, problem };
  if (problem.retryPolicy !== "Slow") return { record, note: problem.message };
  return { record, excluded: problem, requeueAfterMs: RETRY_MS };
}

/** An owner must be in the same namespace. Otherwise the garbage collector deletes the object as an orphan. */
function creatorFor(binding: SecretBinding, ref: ObjectRef, onRelease: "Retain" | "Remove"): Creator {
  const { apiVersion, kind, metadata } = binding;
  const isOwner = onRelease === "Remove" && ref.namespace === metadata.namespace;
  return { ...creatorOf(binding), ...(isOwner && { owner: { apiVersion, kind, name: metadata.name } }) };
}
