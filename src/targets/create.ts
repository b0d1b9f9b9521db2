/**
 * One target that the binding makes: its manifest and the values of its fields come in, the object that stands there as a
 * whole goes out. It is made when all values are there, put right when it differs, and made again when it is gone. An
 * object that the binding did not make is never touched.
 */

import {
  bindingKey,
  manifestOf,
  modeOf,
  onReleaseOf,
  type SecretBinding,
  type Target,
  type TargetStatus,
} from "../api/binding.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import {
  apiVersionOf,
  describeObject,
  type JsonValue,
  type KubeObject,
  type ObjectRef,
  parseApiVersion,
} from "../apimachinery/objects.ts";
import { NotMeant, Problem } from "../apimachinery/problem.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import { correctObject, makeObject, noNamespace } from "../apply/create.ts";
import { composeWhole, decideWhole, isMadeBy, type Maker, type Whole } from "../apply/manifest.ts";
import { attempt, verbsFor } from "../kube/access-error.ts";
import { isStatus } from "../kube/api-error.ts";
import { type Access, findObject } from "../kube/get.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { TargetShape } from "../model/target-shape.ts";
import type { Run } from "../parts.ts";
import { missingOf, noteOf } from "../transform/plan.ts";
import type { Plan, PlannedField } from "../transform/plan-types.ts";
import { contended } from "./contention.ts";
import type { TargetOutcome } from "./outcome.ts";
import { makerOf, withoutHoldings } from "./release.ts";

/** What the spec and the sources say of the object, whatever stands there. */
interface Wanted {
  target: Target;
  ref: ObjectRef;
  plan: Plan;
  shape: TargetShape;
  /** Why not all values are there. */
  missing: Problem | undefined;
}

/** `record` is what status says of the target if the controller dies before it is synced. */
export interface ReadyWhole {
  record: TargetStatus;
  /** Status does not say yet that the object may be this binding's. */
  isNew: boolean;
  wanted: Wanted;
  /** Undefined: it is to be made. */
  live: KubeObject | undefined;
  whole: Whole;
  decision: { write: boolean; takenBy: string[] };
}

export const MADE_ONCE = "made once, and left alone from then on (mode: Once)";

/** Whether nothing is to be done any more, whatever became of the object: a run that was pruned must not run again. */
export function isMadeOnce(binding: SecretBinding, target: Target, { created, uid }: TargetStatus): boolean {
  return modeOf(binding, target) === "Once" && created === true && uid !== undefined;
}

interface Failed {
  record: TargetStatus;
  problem: Problem;
}

/** Finds out what is to be made or put right. */
export async function prepareWhole(
  run: Run,
  target: Target,
  { ref, plan, shape }: Pick<Wanted, "ref" | "plan" | "shape">,
  record: TargetStatus,
): Promise<ReadyWhole | Failed> {
  const wanted = { target, ref, plan, shape, missing: missingOf(plan) ?? run.differ };
  return await decided(run, wanted, record, run.seen(ref));
}

/** Where there is no namespace there are no rights in it, and nobody can grant any. */
export async function withoutNamespace({ parts }: Run, ref: ObjectRef | Problem, problem: Problem): Promise<Problem> {
  if (problem.reason !== "Forbidden" || ref instanceof Problem || ref.namespace === undefined) return problem;
  try {
    await parts.client.get(CONTROLLER, { resource: NAMESPACES, name: ref.namespace });
    return problem;
  } catch (error) {
    return isStatus(error, 404) ? noNamespace(ref) : problem;
  }
}

/** What to do with the object as it is now. Nothing of one that others made is recorded as ours. */
async function decided(run: Run, wanted: Wanted, record: TargetStatus, seen?: string): Promise<ReadyWhole | Failed> {
  const outcome = await attempt(decideOn(run, wanted, record, seen));
  if (!(outcome instanceof Problem)) return outcome;
  return { record: outcome instanceof NotMade && record.created ? withoutHoldings(record) : record, problem: outcome };
}

/** Throws Problem. */
async function decideOn(run: Run, wanted: Wanted, record: TargetStatus, seen?: string): Promise<ReadyWhole> {
  const { target, ref, plan, shape, missing } = wanted;
  if (isSourceOf(run.binding, ref)) throw ownSource(ref);
  const live = await findObject(accessOf(run, wanted), seen);
  const onRelease = onReleaseOf(run.binding, target);
  const isNew = record.created !== true;
  const compose = (fields: readonly PlannedField[]) =>
    composeWhole(manifestOf(target), fields, makerFor(run.binding, ref, onRelease), shape);
  if (live === undefined) {
    if (missing) throw missing;
    const noted = { ...(isNew ? withoutHoldings(record) : record), created: true, onRelease };
    const decision = { write: true, takenBy: ["somebody"] };
    return { record: noted, isNew, wanted, live, whole: compose(plan.fields), decision };
  }
  if (!isMadeBy(run.binding.metadata.uid, live, record)) throw new NotMade(ref);
  if (live.metadata.deletionTimestamp !== undefined) throw beingDeleted(ref);
  const same = record.uid === live.metadata.uid && !isNew ? record : withoutHoldings(record);
  const noted = { ...same, created: true, uid: live.metadata.uid, onRelease };
  if (isMadeOnce(run.binding, target, noted)) {
    const decision = { write: false, takenBy: [] };
    return { record: noted, isNew, wanted, live, whole: compose(plan.fields), decision };
  }
  const whole = compose(fieldsFor(wanted, live, same));
  return { record: noted, isNew, wanted, live, whole, decision: decideWhole(whole, live, same) };
}

/**
 * The values that the object is to have. What waits for its value stays as it stands there; while others wait that are
 * not optional, all do but what is to be removed. Throws Problem when nothing is.
 */
function fieldsFor({ plan, missing }: Wanted, live: KubeObject, { paths = [] }: TargetStatus): PlannedField[] {
  const isOurs = (path: FieldPath) => paths.includes(String(path));
  const asItIs = (path: FieldPath): PlannedField[] => {
    const value = isOurs(path) ? (path.get(live) as JsonValue | undefined) : undefined;
    return value === undefined ? [] : [{ path, value: new SecretValue(value), fromSecret: true, append: true }];
  };
  const leftOut = (onMissing: string) =>
    plan.leftOut.filter(({ why }) => why.policy.onMissing === onMissing).map(({ path }) => path);
  const waiting = leftOut("Wait").flatMap(asItIs);
  if (missing === undefined) return [...plan.fields, ...waiting];
  if (!leftOut("Remove").some(isOurs)) throw missing;
  return [...plan.fields.flatMap(({ path }) => asItIs(path)), ...waiting];
}

/** How often a write is decided anew within one run because somebody else wrote the object at the same time. */
const TRIES = 5;

/** Makes or corrects what was prepared, unless it stands there already or somebody keeps changing or deleting it. */
export async function syncWhole(run: Run, prepared: ReadyWhole, tries = TRIES): Promise<TargetOutcome> {
  const { parts, binding } = run;
  const { wanted, live, whole, decision } = prepared;
  const { ref, plan, missing } = wanted;
  const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const fight = `${binding.metadata.uid}/${ref.resource.group}/${where}`;
  const isOnce = modeOf(binding, wanted.target) === "Once";
  const said = () => ({
    ...noteOf(plan),
    ...(isOnce && { note: MADE_ONCE }),
    ...contended(
      run,
      fight,
      `changing or deleting ${where}, which this binding made; it is put right more and more rarely. Let one of the two go`,
    ),
    ...(missing && !isOnce && { problem: missing }),
  });
  if (live !== undefined && !decision.write) return { record: held(prepared.record, live, whole), ...said() };
  const wait = parts.contention.mayWrite(fight, run.inputs, decision.takenBy, run.sourceUids);
  if (wait > 0) return { record: prepared.record, ...said(), againMs: wait };
  try {
    const access = accessOf(run, wanted);
    const answer = live === undefined ? await makeObject(access, whole) : await correctObject(access, whole, live);
    if (answer === "stale") return await syncAgain(run, prepared, tries - 1);
    const record = held(prepared.record, answer, whole);
    const { uid, resourceVersion, generation } = answer.metadata;
    const stands = { ref, version: { uid, resourceVersion, generation } };
    parts.propagation.wrote(bindingKey(binding));
    // The server spells something in its own way, and it stood there already.
    if (resourceVersion === live?.metadata.resourceVersion) return { record, stands, ...said() };
    parts.contention.wrote(fight, run.inputs, uid, run.sourceUids);
    const [reason, note] = live === undefined ? ["Created", `made ${where}`] : ["Written", `put ${where} right`];
    parts.log.info({ binding: bindingKey(binding), target: where }, note);
    parts.events.record(binding, { type: "Normal", reason, action: "Sync", note });
    return { record, stands, ...said() };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return failed(prepared.record, error);
  }
}

/** When to look again for what may be made anew unseen, such as a listed namespace, which nobody watches. */
const AGAIN_MS = 30_000;

/** A target that is not as it should be, unless nobody can have meant it. */
export function failed(record: TargetStatus, problem: Problem): TargetOutcome {
  if (!record.selected || !(problem instanceof NotMeant)) return { record, problem };
  return { record, note: problem.message, ...(problem.healing === "late" && { againMs: AGAIN_MS }) };
}

async function syncAgain(run: Run, { wanted, record }: ReadyWhole, tries: number): Promise<TargetOutcome> {
  const problem = new Problem("Unavailable", "the object changes faster than it can be written; it is tried again");
  if (tries === 0) return { record, problem };
  const again = await decided(run, wanted, record);
  return "problem" in again ? failed(again.record, again.problem) : syncWhole(run, again, tries);
}

function accessOf({ parts, identity, binding }: Run, { target, ref }: Wanted): Access {
  return { client: parts.client, identity, ref, verbs: verbsFor(true, onReleaseOf(binding, target)) };
}

/** Owners are of the same namespace, else the garbage collector takes the object for an orphan at once. */
function makerFor(binding: SecretBinding, ref: ObjectRef, onRelease: "Retain" | "Remove"): Maker {
  const { apiVersion, kind, metadata } = binding;
  const isOwner = onRelease === "Remove" && ref.namespace === metadata.namespace;
  return { ...makerOf(binding), ...(isOwner && { owner: { apiVersion, kind, name: metadata.name } }) };
}

/** The record once everything stands. */
function held(
  { acquiring: _a, parents: _p, ...record }: TargetStatus,
  { metadata }: KubeObject,
  whole: Whole,
): TargetStatus {
  const paths = whole.fields.map(({ path }) => String(path));
  return { ...record, uid: metadata.uid, manifest: whole.digest, paths };
}

function isSourceOf({ metadata, spec }: SecretBinding, { resource, namespace, name }: ObjectRef): boolean {
  const is = (group: string, plural: string, where: string | undefined, called: string) =>
    resource.group === group && resource.plural === plural && namespace === where && name === called;
  return spec.sources.some(({ secret, configMap, object }) => {
    if (secret) return is("", "secrets", secret.namespace ?? metadata.namespace, secret.name);
    if (configMap) return is("", "configmaps", configMap.namespace ?? metadata.namespace, configMap.name);
    const where = object.scope === "Cluster" ? undefined : metadata.namespace;
    return is(parseApiVersion(object.apiVersion).group, object.resource, where, object.name);
  });
}

function ownSource(ref: ObjectRef): Problem {
  return new NotMeant("InvalidBinding", `${describe(ref)} is a source of this binding, which can't make what it reads`);
}

class NotMade extends Problem {
  constructor(ref: ObjectRef) {
    super(
      "Conflict",
      `${describe(ref)} exists and was not made by this binding, so it is never touched. Delete it, or take create out of the target to write into it`,
    );
  }
}

function beingDeleted(ref: ObjectRef): Problem {
  return new Problem("TargetNotFound", `${describe(ref)} is being deleted; it is made again once it is gone`);
}

const describe = ({ resource, namespace, name }: ObjectRef) =>
  `${apiVersionOf(resource)} ${describeObject(resource.kind, namespace, name)}`;
