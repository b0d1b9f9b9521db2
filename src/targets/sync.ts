/** One target of a binding: its fields and the sources as read come in, what to write is decided, then written. */

import {
  bindingKey,
  type Field,
  manifestOf,
  modeOf,
  onConflictOf,
  onReleaseOf,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import { fieldManagerOf } from "../api/field-manager.ts";
import { assertManifest } from "../api/manifest.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { sameJson } from "../apimachinery/json.ts";
import { describeObject, type KubeObject, type ObjectRef, parseApiVersion } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type Decision, type Desired, decide, recordedPaths, waitingIn } from "../apply/decide.ts";
import { decideUnread, digestOf, type Left, unread } from "../apply/last-applied.ts";
import { readTarget, writeTarget } from "../apply/write.ts";
import { attempt } from "../kube/access-error.ts";
import type { KindSchema } from "../kube/schemas.ts";
import type { TargetShape } from "../model/target-shape.ts";
import type { Run, WritingRun } from "../parts.ts";
import { withWithdrawn } from "../sources/grants.ts";
import type { LiveSource } from "../transform/live-source.ts";
import { checkFields, missingOf, noteOf, planTarget } from "../transform/plan.ts";
import type { Plan } from "../transform/plan-types.ts";
import { notAcknowledged, readableCopies } from "../transform/readable-copies.ts";
import { checkAgainstSchema, checkManifest, schemaIn } from "../transform/schema-check.ts";
import { shapeOf } from "../transform/target-shape.ts";
import { contended } from "./contention.ts";
import { failed, isMadeOnce, MADE_ONCE, prepareWhole, type ReadyWhole, syncWhole, withoutNamespace } from "./create.ts";
import type { TargetOutcome } from "./outcome.ts";
import { pathsOf, releasePaths, withoutHoldings } from "./release.ts";

/** `record` is what status says of the target if the controller dies before it is synced. */
export type Prepared =
  | Ready
  | ReadyWhole
  | { record: TargetStatus; problem: Problem }
  | { record: TargetStatus; note: string };

interface Ready {
  record: TargetStatus;
  ref: ObjectRef;
  live: KubeObject;
  desired: Desired;
  decision: Decision;
}

/** A target of the spec, and what status says of it. */
export interface Named {
  target: Target;
  ref: ObjectRef | Problem;
  record: TargetStatus;
}

/**
 * Finds out what is to be written, and releases what the target's fields name no more. `blocked` says why nothing can be
 * done there; what is wrong with the binding itself goes first, and then nothing is taken out for it either.
 */
export async function prepareTarget(
  run: WritingRun,
  { target, ref, record: before }: Named,
  sources: ReadonlyMap<string, LiveSource | Problem>,
  blocked: Problem | undefined,
): Promise<Prepared> {
  const isMade = target.create !== undefined;
  const onRelease = onReleaseOf(run.binding, target, isMade && before.created === true);
  const named = { ...before, apiVersion: target.apiVersion, onRelease };
  if (isMade && isMadeOnce(run.binding, target, before)) return { record: named, note: MADE_ONCE };
  const found = await attempt(examine(run, target, ref, before, sources, blocked));
  if (isMade && found instanceof Problem) return { record: named, problem: await withoutNamespace(run, ref, found) };
  if (found instanceof Problem && isMistake(found)) return { record: named, problem: found };
  if (isMade && !(found instanceof Problem)) return prepareWhole(run, target, found, named);
  const { record, released, problem } = await releaseDropped(run, named, target, found);
  if (problem) return { record, problem };
  if (found instanceof Problem) return { record, problem: found };
  const missing = missingOf(found.plan) ?? (isDue(found.plan) ? run.differ : undefined);
  if (missing) return { record, problem: missing };
  const decided = await attempt(decideTarget(run, target, found, record, released));
  return decided instanceof Problem ? { record, problem: decided } : decided;
}

/** What to write, from the target as it is once nothing is left of what its fields name no more. Throws Problem. */
async function decideTarget(
  run: Run,
  target: Target,
  { ref, plan, shape, live, left }: Examined,
  record: TargetStatus,
  released: boolean,
): Promise<Ready> {
  const { binding } = run;
  const desired = { plan, shape, fieldManager: fieldManagerOf(binding), onConflict: onConflictOf(binding, target) };
  const decision = left && decideUnread(desired, record, left);
  if (left && decision) return { record, ref, live: unread(ref, left), desired, decision };
  return decideOn(run, ref, desired, record, released ? undefined : live);
}

/** What to write to a target as it was read, or as it is now. Throws Problem. */
async function decideOn(
  { parts, identity }: Run,
  ref: ObjectRef,
  desired: Desired,
  record: TargetStatus,
  read?: KubeObject,
): Promise<Ready> {
  const live = read ?? (await readTarget(parts.client, identity, ref));
  const decision = decide(desired, live, record);
  return { ref, live, desired, decision, record: noted(record, live, desired, decision) };
}

interface Examined {
  ref: ObjectRef;
  plan: Plan;
  shape: TargetShape;
  /** Undefined for one that the binding makes, which may not be there, and for one that is `left`. */
  live: KubeObject | undefined;
  left: Left | undefined;
}

/** The plan of a target, checked against its schema, and the target as it is. Throws Problem. */
async function examine(
  run: WritingRun,
  target: Target,
  ref: ObjectRef | Problem,
  record: TargetStatus,
  sources: ReadonlyMap<string, LiveSource | Problem>,
  blocked: Problem | undefined,
): Promise<Examined> {
  const { parts, binding, identity, differ, seen, planning } = run;
  const recipes = await planning.check(target, () => checkFields(target.fields, sources.keys()));
  if (target.create) assertManifest(parseApiVersion(target.apiVersion).group, target.kind, manifestOf(target));
  if (blocked) throw blocked;
  if (ref instanceof Problem) throw ref;
  const schema = await parts.schemas.of(ref.resource);
  const read = () => attempt(readTarget(parts.client, identity, ref, seen(ref)));
  const once = modeOf(binding, target) === "Once" && !target.create ? await read() : undefined;
  const kept = once && (once instanceof Problem ? [] : writtenOnce(target, record, once));
  const due = target.fields.filter(({ path }) => !kept?.some((each) => each.equals(FieldPath.parse(path))));
  const schemaAt = schema && schemaIn(schema.root, schema.resolve);
  const readable = readableCopies(binding, recipes, ref, schemaAt);
  const isNamed = ({ path }: Field) => readable?.paths.includes(String(FieldPath.parse(path)));
  if (readable && parts.installation.requires("ReadableCopies") && due.some(isNamed))
    throw notAcknowledged(binding, readable);
  const make = () => planTarget(due, sources, schemaAt);
  const made = kept ? await planning.alone(make) : await planning.plan(target, make);
  const planned = withWithdrawn(made, binding, record);
  const plan: Plan = { ...planned, ...(kept && { kept }), ...(readable && { readable }) };
  // Sources of different states remove nothing either.
  if (isDue(plan) && differ?.reason === "SourcesDiffer") throw differ;
  const left = target.create || once ? undefined : run.left(target, ref);
  const live = target.create || left ? undefined : (once ?? (await read()));
  if (live instanceof Problem) throw missingOf(plan) ?? live;
  const fits = ({ root, resolve }: KindSchema) => {
    checkAgainstSchema(plan, root, resolve);
    if (target.create) checkManifest(manifestOf(target), root, resolve);
  };
  if (schema) await planning.fit(made, () => fits(schema));
  return { ref, plan, shape: shapeOf(schema), live, left };
}

/** The fields that this very object holds by record. */
function writtenOnce(target: Target, record: TargetStatus, live: KubeObject): FieldPath[] {
  const named = pathsOf(target);
  return recordedPaths(record, live).flatMap((path) => (named.has(path) ? [FieldPath.parse(path)] : []));
}

/** Whether there is anything to write, now or later. */
function isDue({ fields, leftOut }: Plan): boolean {
  return fields.length + leftOut.length > 0;
}

/** Releases what the target's fields name no more, and removes those whose value is missing where the binding says so. */
async function releaseDropped(run: Run, before: TargetStatus, target: Target, found: Examined | Problem) {
  const named = pathsOf(target);
  const kept = await releasePaths(run, before, onReleaseOf(run.binding, target), named);
  if (kept.problem || found instanceof Problem) return kept;
  const gone = found.plan.leftOut
    .filter(({ why }) => why.policy.onMissing === "Remove")
    .map(({ path }) => String(path));
  const removed = await releasePaths(
    run,
    kept.record,
    "Remove",
    new Set([...named].filter((path) => !gone.includes(path))),
  );
  return { ...removed, released: kept.released || removed.released };
}

/** Whether the binding says something that can't be meant: what an edit broke is not to cost what stood before. */
function isMistake({ healing, reason }: Problem): boolean {
  return healing === "edit" || reason === "UnknownField" || reason === "TypeMismatch";
}

const FIGHT =
  "changing what this binding writes; it is put back more and more rarely. Let one of the two go: take the field out of what the other applies, or out of this binding";
/** How often a write is decided anew within one run because somebody else wrote the target at the same time. */
const TRIES = 5;

/** Writes what was prepared, unless it stands there already or somebody keeps changing it back. */
export async function syncTarget(run: Run, prepared: Prepared, tries = TRIES): Promise<TargetOutcome> {
  if ("problem" in prepared) return failed(prepared.record, prepared.problem);
  if ("note" in prepared) return prepared;
  if ("whole" in prepared) return syncWhole(run, prepared);
  const { parts, binding } = run;
  const { ref, live, desired, decision } = prepared;
  const record = held(prepared.record, live, desired, decision);
  const note = noteOf(desired.plan);
  const fight = `${binding.metadata.uid}/${live.metadata.uid}`;
  if (!decision.write)
    return { record, ...note, stands: standing(ref, live, desired), ...contended(run, fight, FIGHT) };
  const { takenBy, differing } = decision;
  const wait = parts.contention.mayWrite(fight, run.inputs, takenBy, run.sourceUids, differing);
  if (wait > 0) return { record: prepared.record, ...contended(run, fight, FIGHT), againMs: wait };
  try {
    const answer = await writeTarget(parts.client, run.identity, ref, desired, decision, live);
    if (answer === "stale") return syncTarget(run, await decideAgain(run, prepared, tries - 1), tries - 1);
    const { resourceVersion } = answer.metadata;
    const stands = standing(ref, answer, desired);
    parts.propagation.wrote(bindingKey(binding));
    // The server spells the value in its own way, and it stood there already.
    if (resourceVersion === live.metadata.resourceVersion)
      return { record, ...note, stands, ...contended(run, fight, FIGHT) };
    parts.contention.wrote(fight, run.inputs, live.metadata.uid, run.sourceUids);
    const paths = desired.plan.fields.map(({ path }) => String(path));
    const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
    parts.log.info({ binding: bindingKey(binding), target: where, paths }, "wrote");
    parts.events.record(binding, {
      type: "Normal",
      reason: "Written",
      action: "Sync",
      note: [`wrote ${paths.join(", ")} of ${where}`, ...decision.warnings].join("; "),
    });
    return { record, ...note, stands, ...contended(run, fight, FIGHT) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { record: prepared.record, problem: error };
  }
}

/** The same with the target as it is now. What status says of it before the write has to be as true of that. */
async function decideAgain(run: Run, prepared: Ready, tries: number): Promise<Prepared> {
  const { record, ref, desired } = prepared;
  const changing = new Problem("Unavailable", "the target changes faster than it can be written; it is tried again");
  if (tries === 0) return { record, problem: changing };
  const again = await attempt(decideOn(run, ref, desired, record));
  if (again instanceof Problem) return { record, problem: again };
  return sameJson(again.record, record) ? again : { record, problem: changing };
}

function standing(ref: ObjectRef, { metadata: { uid, resourceVersion, generation } }: KubeObject, desired: Desired) {
  const values = digestOf(desired);
  return { ref, version: { uid, resourceVersion, generation }, ...(values !== undefined && { values }) };
}

/** The record with what is about to be acquired, and what may have been by a write that was cut off. */
function noted(record: TargetStatus, live: KubeObject, desired: Desired, decision: Decision): TargetStatus {
  const same = record.uid === live.metadata.uid ? record : withoutHoldings(record);
  if (!decision.write || decision.acquires.length === 0) return same;
  return {
    ...same,
    uid: live.metadata.uid,
    ...listed("acquiring", [...decision.acquires, ...unsettled(same, desired)]),
    ...listed("parents", [...(same.parents ?? []), ...decision.parents]),
  };
}

/** The record once everything stands. */
function held(record: TargetStatus, live: KubeObject, desired: Desired, { carried }: Decision): TargetStatus {
  const { acquiring: _, paths = [], ...rest } = record;
  const written = [...desired.plan.fields, ...carried].map(({ path }) => String(path));
  const waiting = waitingIn(desired).map(String);
  const ours = [...written, ...paths.filter((path) => waiting.includes(path))];
  // In the order in which they came: status changes with what is ours, not with what stands there.
  const inOrder = [...paths.filter((path) => ours.includes(path)), ...ours];
  const open = unsettled(record, desired).filter((path) => !ours.includes(path));
  return { ...rest, uid: live.metadata.uid, paths: [...new Set(inOrder)], ...listed("acquiring", open) };
}

/** Paths of which nobody knows whether they were written, and whose value is missing since. */
function unsettled({ acquiring = [] }: TargetStatus, desired: Desired): string[] {
  const waiting = waitingIn(desired).map(String);
  return acquiring.filter((path) => waiting.includes(path));
}

function listed<K extends string>(key: K, values: readonly string[]): { [key in K]?: string[] } {
  return (values.length === 0 ? {} : { [key]: [...new Set(values)] }) as { [key in K]?: string[] };
}
