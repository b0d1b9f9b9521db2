/**
 * What status records as ours comes in; what the spec names no more is taken out of the targets again, or given up. The
 * other half of target.ts: nothing that was ever written is left without a way back.
 */

import {
  bindingKey,
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
import { Problem } from "../apimachinery/problem.ts";
import { NAMESPACES } from "../apimachinery/resources.ts";
import { releaseObject } from "../apply/create.ts";
import type { Maker } from "../apply/manifest.ts";
import { type Released, release } from "../apply/release.ts";
import { accountNotFound, attempt, verbsFor } from "../kube/access-error.ts";
import { isStatus } from "../kube/api-error.ts";
import { CONTROLLER, type Identity, serviceAccountIdentity } from "../kube/identity.ts";
import type { Parts, Run } from "../parts.ts";
import { shapeOf } from "../transform/target-shape.ts";
import { sideBySide } from "../workqueue/map-concurrent.ts";
import { ownActor } from "./actor.ts";
import type { TargetOutcome } from "./outcome.ts";
import { resolveRecorded } from "./references.ts";

/** How long a deleted binding is held for targets that can't be released. */
const BEST_EFFORT_MS = 60_000;

/** Releases what status records and no target of the spec is. The outcomes are of those that could not be yet. */
export async function releaseUnnamed(run: Run, named: ReadonlySet<TargetStatus>): Promise<TargetOutcome[]> {
  const unnamed = (run.binding.status?.targets ?? []).filter((each) => !named.has(each));
  const outcomes = await sideBySide(unnamed, async (before) => {
    const { record, problem } = await releasePaths(run, before, before.onRelease ?? "Retain", new Set());
    // Rights may end with the namespace, and then there is nothing left to release.
    const isOver =
      problem !== undefined &&
      before.namespace !== undefined &&
      (await attempt(isTerminating(run.parts, before.namespace)));
    return problem === undefined || isOver === true ? [] : [{ record, problem }];
  });
  return outcomes.flat();
}

/**
 * Releases what those records say of a deleted binding. What could not be yet comes back, until a minute after `since`, in
 * milliseconds of the epoch: then it is given up.
 */
export async function releaseDeleted(
  parts: Parts,
  binding: SecretBinding,
  records: readonly TargetStatus[],
  since: number,
): Promise<TargetStatus[]> {
  const namespace = binding.metadata.namespace as string;
  const identity = serviceAccountIdentity(namespace, binding.spec.serviceAccountName);
  // With a namespace its accounts go too, which nobody meant as a word to Inlay.
  const ending = await attempt(isTerminating(parts, namespace));
  const actor = ownActor(binding, parts.installation);
  const account =
    actor instanceof Problem
      ? actor
      : ending === true
        ? undefined
        : await accountProblem(parts, identity, actor.account);
  const run: Run = {
    parts,
    binding,
    identity,
    account,
    differ: undefined,
    seen: () => undefined,
    left: () => undefined,
    inputs: "",
    sourceUids: [],
  };
  const endings = new Map([[namespace, Promise.resolve(ending)]]);
  const outcomes = await sideBySide(records, async (before): Promise<TargetOutcome[]> => {
    const there = before.namespace;
    const known = there === undefined ? undefined : (endings.get(there) ?? attempt(isTerminating(parts, there)));
    if (there !== undefined && known !== undefined) endings.set(there, known);
    if ((await known) === true) return [];
    const { record, problem } = await releasePaths(run, before, releaseModeOf(binding, before), new Set());
    return problem === undefined ? [] : [{ record, problem }];
  });
  const left = outcomes.flat();
  const problem = left.at(-1)?.problem;
  if (problem === undefined) return [];
  if (Date.now() - since < BEST_EFFORT_MS) return left.map(({ record }) => record);
  const note = `gave up after ${BEST_EFFORT_MS / 1000} s, values may be left: ${problem.message}`;
  parts.events.record(binding, { type: "Warning", reason: "ReleaseAbandoned", action: "Release", note });
  parts.log.warn({ binding: bindingKey(binding), reason: "ReleaseAbandoned" }, note);
  return [];
}

/** The spec goes before the record: it may have been changed and not been acted upon since. */
export function releaseModeOf(binding: SecretBinding, record: TargetStatus): "Retain" | "Remove" {
  const ofKind = binding.spec.targets.filter((target) => isSameKind(target, record));
  const named = ofKind.find(
    (each) => !selects(each) && recordId(inNamespace(each, record, binding)) === recordId(record),
  );
  const candidates = named ? [named] : ofKind.filter(selects);
  const modes = new Set(candidates.map((each) => onReleaseOf(binding, each, record.created === true)));
  const [mode] = modes;
  return mode !== undefined && modes.size === 1 ? mode : (record.onRelease ?? "Retain");
}

/** A deleted account is not acted as, although the API server would let us. */
async function accountProblem(parts: Parts, identity: Identity, account: ObjectRef) {
  try {
    await parts.client.get(CONTROLLER, account);
    return undefined;
  } catch (error) {
    // Any other failure is told by what is tried as the account.
    return isStatus(error, 404) ? accountNotFound(identity) : undefined;
  }
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
  run: Run,
  recorded: TargetStatus,
  mode: "Retain" | "Remove",
  keep: ReadonlySet<string>,
): Promise<{ record: TargetStatus; released: boolean; problem?: Problem }> {
  const record = credible(recorded);
  const paths = [...(record.paths ?? []), ...(record.acquiring ?? [])].filter((path) => !keep.has(path));
  if (paths.length === 0 && !record.created) return { record, released: false };
  const work = () =>
    record.created ? releaseMade(run, record, keep.size > 0 ? "Retain" : mode) : releaseThem(run, record, mode, paths);
  const problem = run.account ?? (await attempt(work()));
  if (problem === undefined || (await wentWithNamespace(run, record, problem))) {
    const left = record.created ? withoutHoldings(record) : withoutPaths(record, new Set(paths));
    return { record: left, released: true };
  }
  // Its CRD was deleted since the kind was discovered: the next try finds out, and that there is nothing to release.
  if (problem.reason === "KindNotFound") run.parts.discovery.forget(record.apiVersion);
  return { record, released: false, problem };
}

async function releaseThem(
  run: Run,
  record: TargetStatus,
  mode: "Retain" | "Remove",
  paths: readonly string[],
): Promise<undefined> {
  const { parts, binding, identity } = run;
  const ref = await resolveRecorded(record, parts.discovery);
  if (ref === undefined) return;
  const released = await release(parts.client, identity, ref, {
    uid: record.uid,
    paths,
    kept: [...(record.paths ?? []), ...(record.acquiring ?? [])].filter((path) => !paths.includes(path)),
    parents: record.parents ?? [],
    mode,
    fieldManager: fieldManagerOf(binding),
    shape: shapeOf(await parts.schemas.of(ref.resource)),
  });
  tell(run, ref, released);
}

async function releaseMade(run: Run, record: TargetStatus, mode: "Retain" | "Remove"): Promise<undefined> {
  const { client, discovery } = run.parts;
  const ref = await resolveRecorded(record, discovery);
  if (ref === undefined) return;
  const access = { client, identity: run.identity, ref, verbs: verbsFor(true, mode) };
  const ending = await releaseObject(access, makerOf(run.binding), record, mode);
  if (ending === "gone") return;
  const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const [reason, note] =
    ending === "deleted" ? ["Removed", `deleted ${where}`] : ["Retained", `left ${where} as it is, and gave it up`];
  run.parts.events.record(run.binding, { type: "Normal", reason, action: "Release", note });
  run.parts.log.info({ binding: bindingKey(run.binding), target: where }, reason);
}

/** What says of an object that the binding made it. */
export function makerOf(binding: SecretBinding): Maker {
  return { uid: binding.metadata.uid, fieldManager: fieldManagerOf(binding) };
}

/** One event for each thing that became of values: gone, left by wish, left because they must. */
function tell({ parts, binding }: Run, ref: ObjectRef, { removed, retained, blocked, shifted }: Released): void {
  const where = describeObject(ref.resource.kind, ref.namespace, ref.name);
  const record = (type: "Normal" | "Warning", reason: string, paths: string[], note: string) => {
    if (paths.length === 0) return;
    parts.events.record(binding, { type, reason, action: "Release", note });
    parts.log.info({ binding: bindingKey(binding), target: where, paths }, reason);
  };
  record("Normal", "Removed", removed, `removed ${removed.join(", ")} of ${where}`);
  record("Normal", "Retained", retained, `left ${retained.join(", ")} of ${where} as they are, and gave them up`);
  record(
    "Warning",
    "ReleaseBlocked",
    blocked,
    `left ${blocked.join(", ")} of ${where}: the object is not valid without`,
  );
  record(
    "Warning",
    "ReleaseBlocked",
    shifted,
    `left ${shifted.join(", ")} of ${where}: others changed the list since, so what is there now may not be this binding's`,
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

/** Without what no binding can have written: whoever could edit a status would else steer a release there. */
function credible(record: TargetStatus): TargetStatus {
  if (!isWritableKind(parseApiVersion(record.apiVersion).group, record.kind)) return withoutHoldings(record);
  const all = [...(record.paths ?? []), ...(record.acquiring ?? [])];
  const forged = all.filter((path) => !isWritablePath(FieldPath.parse(path)));
  return forged.length === 0 ? record : withoutPaths(record, new Set(forged));
}

/** The record of a target in which nothing is ours. */
export function withoutHoldings(record: TargetStatus): TargetStatus {
  const { uid: _u, paths: _p, acquiring: _a, parents: _r, created: _c, manifest: _m, ...rest } = record;
  return rest;
}

/** The canonical paths of a target's fields; one that can't be parsed was never written. */
export function pathsOf(target: Target): Set<string> {
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

/** The rights in a namespace that is being deleted may have gone before the object, or with it. */
async function wentWithNamespace({ parts }: Run, { namespace }: TargetStatus, { reason }: Problem): Promise<boolean> {
  return reason === "Forbidden" && namespace !== undefined && (await attempt(isTerminating(parts, namespace))) === true;
}

/**
 * With its namespace, an object goes anyway, and the account and its rights may have gone before it. Of a namespace that
 * this installation is not for, it is not known.
 */
async function isTerminating({ client, installation }: Parts, namespace: string): Promise<boolean> {
  const { scope = namespace } = installation;
  if (namespace !== scope) return false;
  try {
    const { metadata } = await client.get(CONTROLLER, { resource: NAMESPACES, name: namespace });
    return metadata.deletionTimestamp !== undefined;
  } catch (error) {
    if (isStatus(error, 404)) return true;
    throw error;
  }
}
