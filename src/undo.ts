/**
 * What status records as ours comes in; what the spec names no more is taken out of the targets again, or given up. The
 * other half of target.ts: nothing that was ever written is left without a way back.
 */
import { type Released, release } from "./apply/release.ts";
import { isStatus } from "./kube/api-error.ts";
import { CONTROLLER, serviceAccountIdentity } from "./kube/identity.ts";
import { onReleaseOf, type SecretBinding, type Target, type TargetStatus } from "./model/binding.ts";
import { fieldManagerOf } from "./model/field-manager.ts";
import { FieldPath } from "./model/field-path.ts";
import { describeObject, type ObjectRef } from "./model/kube-object.ts";
import type { TargetOutcome } from "./model/outcome.ts";
import { Problem } from "./model/problem.ts";
import type { Parts } from "./parts.ts";
import { isRecordOf, NAMESPACES, newRecord, type References, resolveRecorded } from "./resolve/references.ts";
import type { Run } from "./target.ts";
import { isRequired } from "./transform/schema-check.ts";

/** How long a deleted binding is held for targets that can't be released. */
const BEST_EFFORT_MS = 60_000;

/** A target of the spec, once nothing is left of fields that it no longer has. */
export interface Remaining {
  target: Target;
  ref: ObjectRef | Problem;
  record: TargetStatus;
  /** Why it can't be written: fields that it no longer has are still to be released. */
  problem: Problem | undefined;
}

/**
 * Releases what status records and the spec no longer names: whole targets, and single fields. `left` are objects that
 * the spec names no more and that could not be released yet.
 */
export async function releaseLeftovers(
  run: Run,
  { targets }: References,
  blocked: Problem | undefined,
): Promise<{ remaining: Remaining[]; left: TargetOutcome[] }> {
  const recorded = run.binding.status?.targets ?? [];
  const named = new Set<TargetStatus>();
  const remaining: Remaining[] = [];
  for (const { target, ref } of targets) {
    const fresh = newRecord(run.binding, target, ref);
    const before = recorded.find((each) => isRecordOf(each, fresh)) ?? fresh;
    named.add(before);
    const mode = onReleaseOf(run.binding, target);
    const { record, problem } = await releasePaths(run, before, mode, pathsOf(target), blocked);
    remaining.push({ target, ref, record: { ...record, apiVersion: target.apiVersion, onRelease: mode }, problem });
  }
  const left: TargetOutcome[] = [];
  for (const before of recorded.filter((each) => !named.has(each))) {
    const { record, problem } = await releasePaths(run, before, before.onRelease ?? "Retain", new Set(), blocked);
    if (problem) left.push({ record, problem });
  }
  return { remaining, left };
}

/** Releases everything of a deleted binding. Says whether to come back. */
export async function releaseDeleted(parts: Parts, binding: SecretBinding): Promise<{ done: boolean }> {
  const identity = serviceAccountIdentity(binding.metadata.namespace as string, binding.spec.serviceAccountName);
  const run: Run = { parts, binding, identity, inputs: "", sourceUids: [] };
  let problem: Problem | undefined;
  for (const record of binding.status?.targets ?? []) {
    if (record.namespace !== undefined && (await isTerminating(parts, record.namespace))) continue;
    // The spec goes before the record: it may have been changed in the same breath as the binding was deleted.
    const target = binding.spec.targets.find((each) => isRecordOf(record, inNamespace(each, record, binding)));
    const mode = target ? onReleaseOf(binding, target) : (record.onRelease ?? "Retain");
    problem = (await releasePaths(run, record, mode, new Set(), undefined)).problem ?? problem;
  }
  if (problem === undefined) return { done: true };
  if (Date.now() - Date.parse(binding.metadata.deletionTimestamp ?? "") < BEST_EFFORT_MS) return { done: false };
  const note = `gave up after ${BEST_EFFORT_MS / 1000} s, values may be left: ${problem.message}`;
  parts.events.record(binding, { type: "Warning", reason: "ReleaseAbandoned", action: "Release", note });
  parts.log.warn(
    { binding: `${binding.metadata.namespace}/${binding.metadata.name}`, reason: "ReleaseAbandoned" },
    note,
  );
  return { done: true };
}

/** A target as records name it: of a namespaced kind, which its record tells, it is in the binding's unless it says. */
function inNamespace({ apiVersion, kind, name, namespace }: Target, record: TargetStatus, binding: SecretBinding) {
  const own = record.namespace === undefined ? undefined : binding.metadata.namespace;
  const where = namespace ?? own;
  return { apiVersion, kind, name, ...(where !== undefined && { namespace: where }) };
}

/** Releases the paths of one record but those to keep. The record comes back as it is then. */
async function releasePaths(
  run: Run,
  record: TargetStatus,
  mode: "Retain" | "Remove",
  keep: ReadonlySet<string>,
  blocked: Problem | undefined,
): Promise<{ record: TargetStatus; problem?: Problem }> {
  const { parts, binding, identity } = run;
  const paths = [...(record.paths ?? []), ...(record.acquiring ?? [])].filter((path) => !keep.has(path));
  if (paths.length === 0) return { record };
  try {
    if (blocked) throw blocked;
    const ref = await resolveRecorded(record, parts.discovery);
    if (ref !== undefined) {
      const schema = await parts.schemas.of(ref.resource);
      const released = await release(parts.client, identity, ref, {
        uid: record.uid,
        paths,
        parents: record.parents ?? [],
        mode,
        fieldManager: fieldManagerOf(binding),
        isRequired: (path) => schema !== undefined && isRequired(path, schema.root, schema.resolve),
      });
      tell(run, ref, released);
    }
    return { record: withoutPaths(record, new Set(paths)) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // Its CRD was deleted since the kind was discovered: the next try finds out, and that there is nothing to release.
    if (error.reason === "KindNotFound") parts.discovery.forget(record.apiVersion);
    return { record, problem: error };
  }
}

/** One event for each thing that became of values: gone, left by wish, left because they must. */
function tell({ parts, binding }: Run, ref: ObjectRef, { removed, retained, blocked }: Released): void {
  const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const record = (type: "Normal" | "Warning", reason: string, paths: string[], note: string) => {
    if (paths.length === 0) return;
    parts.events.record(binding, { type, reason, action: "Release", note });
    parts.log.info({ binding: `${binding.metadata.namespace}/${binding.metadata.name}`, target: where, paths }, reason);
  };
  record("Normal", "Removed", removed, `removed ${removed.join(", ")} of ${where}`);
  record("Normal", "Retained", retained, `left ${retained.join(", ")} of ${where} as they are, and gave them up`);
  record(
    "Warning",
    "ReleaseBlocked",
    blocked,
    `left ${blocked.join(", ")} of ${where}: the object is not valid without`,
  );
}

function withoutPaths(record: TargetStatus, gone: ReadonlySet<string>): TargetStatus {
  const { paths, acquiring, ...rest } = record;
  const left = (list: string[] | undefined) => list?.filter((path) => !gone.has(path)) ?? [];
  const [leftPaths, leftAcquiring] = [left(paths), left(acquiring)];
  return {
    ...rest,
    ...(leftPaths.length > 0 && { paths: leftPaths }),
    ...(leftAcquiring.length > 0 && { acquiring: leftAcquiring }),
  };
}

/** The canonical paths of a target's fields; one that can't be parsed was never written. */
function pathsOf(target: Target): Set<string> {
  const paths = new Set<string>();
  for (const { path } of target.fields) {
    try {
      paths.add(String(FieldPath.parse(path)));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }
  return paths;
}

/** With its namespace, an object goes anyway, and the account and its rights may have gone before it. */
async function isTerminating({ client }: Parts, namespace: string): Promise<boolean> {
  try {
    const { metadata } = await client.get(CONTROLLER, { resource: NAMESPACES, name: namespace });
    return metadata.deletionTimestamp !== undefined;
  } catch (error) {
    if (isStatus(error, 404)) return true;
    throw error;
  }
}
