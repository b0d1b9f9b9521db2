/**
 * Explains a rejected write: which fields of the binding are refused, and by which rule. Where the answer does not say
 * so, it tries each field alone by a dry run.
 */
import { createHash } from "node:crypto";
import type { TargetStatus } from "../api/binding.ts";
import { stringifyJson } from "../apimachinery/json.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { type JsonObject, type KubeObject, type ObjectRef, plainWord } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { type Decision, type Desired, decide, type Located } from "../apply/decide.ts";
import { findingsOf, placesIn } from "../apply/findings.ts";
import { locateIn } from "../apply/locate.ts";
import { pathsIn, type Whole } from "../apply/manifest.ts";
import { isSameRefusal, sharedCauses, tryAlone } from "../apply/trial.ts";
import { readTarget } from "../apply/write.ts";
import { attempt } from "../kube/access-error.ts";
import type { ApiError } from "../kube/api-error.ts";
import { Rejection } from "../kube/rejection.ts";
import { type SchemaAt, schemaIn } from "../transform/schema-check.ts";
import type { TargetShape } from "../transform/target-shape.ts";
import { type SyncContext, writeAccess } from "./dependencies.ts";
import type { TargetOutcome } from "./outcome.ts";
import { ofRevision } from "./record-changes.ts";
import type { Trial } from "./rejections.ts";
import { revisionOf } from "./reverted.ts";

const MAX_PROTECTORS = 3;
/** How many fields are tried alone. */
const MAX_TRIALS = 20;

/** A write of fields to an existing object. */
interface FieldsWrite {
  record: TargetStatus;
  ref: ObjectRef;
  live: KubeObject;
  desired: Desired;
  decision: Decision;
}

/** The problem with an explanation, if it is a rejection. */
export async function explainFields(context: SyncContext, write: FieldsWrite, problem: Problem): Promise<Problem> {
  if (!(problem instanceof Rejection)) return problem;
  const { error } = problem;
  const schemaAt = await schemaFor(context, write.ref);
  const { fields } = write.decision;
  const { clauses, areExact } = findingsOf(error, placesIn(write.live, fields), schemaAt);
  if (areExact) return problem.because(clauses);
  const [only, ...more] = fields;
  if (only !== undefined && more.length === 0)
    return problem.because(clauses.length > 0 ? clauses : [`${only.path} is refused`]);
  const { deps, binding, sourceRevisions } = context;
  const { uid: of, namespace = "" } = binding.metadata;
  const { uid, generation } = write.live.metadata;
  const rejected = { namespace, key: `${of}/${uid}`, sourceRevisions, generation, answer: digestOf(error) };
  const trial = await deps.rejections.trial(rejected, async () => {
    const tried = await attempt(tryEach(context, write, error, schemaAt));
    return tried instanceof Problem ? undefined : tried;
  });
  return problem.because([...(trial?.findings ?? []), ...(trial?.isWhole ? [] : clauses)]);
}

/** Of what distinguishes refusals. The texts of causes may change with each answer: a webhook may write the time. */
function digestOf({ status, denial, causes }: ApiError): string {
  const fields = causes.reveal().map(({ reason, field }) => [reason, field]);
  return createHash("sha256")
    .update(stringifyJson([status, denial, fields]))
    .digest("hex");
}

/** Tries the fields that the write would change, in the current object. Undefined if a try has no answer about its field. */
async function tryEach(
  context: SyncContext,
  { ref, desired, record, live: before }: FieldsWrite,
  error: ApiError,
  schemaAt: SchemaAt,
): Promise<Trial | undefined> {
  const access = writeAccess(context, ref);
  const live = await readTarget(access);
  if (live.metadata.uid !== before.metadata.uid) return undefined;
  const decision = decide(desired, live, ofRevision(record, revisionOf(context)));
  const changed = decision.fields.filter(({ path }) => decision.differing.includes(String(path)));
  const all = changed.length > 0 ? changed : decision.fields;
  const tried = all.slice(0, MAX_TRIALS);
  const alone: string[] = [];
  let isCertain = true;
  for (const field of tried) {
    const verdict = await tryAlone(access, desired, decision, live, field);
    if (verdict === "unknown") return undefined;
    if (verdict === "accepted") continue;
    if (isSameRefusal(verdict, error)) alone.push(clauseFor(sharedCauses(verdict, error), live, field, schemaAt));
    else isCertain = false;
  }
  if (alone.length > 0) return { findings: alone, isWhole: true };
  if (!isCertain) return { findings: [], isWhole: false };
  const paths = tried.map(({ path }) => String(path)).join(", ");
  const together = `${paths} are accepted one by one, but not together`;
  const some = `none of the first ${MAX_TRIALS} of ${all.length} changed fields is refused alone`;
  return { findings: [tried.length === all.length ? together : some], isWhole: false };
}

function clauseFor(causes: ApiError["causes"], live: KubeObject, field: Located, schemaAt: SchemaAt): string {
  const { clauses, areExact } = findingsOf({ causes }, placesIn(live, [field]), schemaAt);
  if (clauses.length === 0) return `${field.path} is refused`;
  return areExact ? clauses.join(", ") : `${field.path} is refused, because ${clauses.join(", ")}`;
}

/**
 * The problem of an object that the binding creates or corrects, with an explanation by the fields in the answer. A part
 * of such an object is not tried: it lacks what the kind requires.
 */
export async function explainObject(
  context: SyncContext,
  { ref, whole, manifest, shape }: { ref: ObjectRef; whole: Whole; manifest: JsonObject; shape: TargetShape },
  problem: Problem,
): Promise<Problem> {
  if (!(problem instanceof Rejection)) return problem;
  const paths = [...whole.fields.map(({ path }) => path), ...pathsIn(manifest)];
  const located = paths.flatMap((path) => {
    const place = locateIn(path, shape, whole.object);
    return place === undefined ? [] : [{ path, place }];
  });
  const places = placesIn(whole.object, located);
  return problem.because(findingsOf(problem.error, places, await schemaFor(context, ref)).clauses);
}

/** Names the bindings that protect an object, if its protection denied the write. `isMarked`: the request had the mark of this binding. */
export function explainProtection(
  { deps, binding }: SyncContext,
  ref: ObjectRef | Problem,
  outcome: TargetOutcome,
  isMarked = true,
): TargetOutcome {
  const { problem } = outcome;
  if (problem?.reason !== "Protected" || ref instanceof Problem) return outcome;
  const by = deps.bindings.protecting(ref).map(plainWord);
  const protectors = by.length === 0 ? "a SecretBinding" : `SecretBinding ${firstOf(by, MAX_PROTECTORS)}`;
  const { name, namespace } = binding.metadata;
  const writer = `{kind: SecretBinding, name: ${name}, namespace: ${namespace}}`;
  const message = isMarked
    ? `${protectors} protects it, and this binding is not one of the writers there, so the API server denied the write; to allow it, ` +
      `add ${writer} to sources[].protect.writers there, or remove the target here`
    : `${protectors} protects it, so the API server denied the dry run, which you may not send as Inlay does; Inlay itself may write ` +
      `it if ${writer} is one of sources[].protect.writers there`;
  return { ...outcome, problem: new Problem("Protected", message) };
}

/** Without a schema, no rule is known. */
async function schemaFor({ deps }: SyncContext, { resource }: ObjectRef): Promise<SchemaAt> {
  const schema = await attempt(deps.schemas.of(resource));
  return schema === undefined || schema instanceof Problem ? () => undefined : schemaIn(schema.root, schema.resolve);
}
