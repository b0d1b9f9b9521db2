/** Matches the objects of a binding's targets with their records in the status. Pure. */
import { isAfterRollout, recordId, type SecretBinding, type Target, type TargetStatus } from "../api/binding.ts";
import { idOf, isSameKind, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { TargetOutcome } from "./outcome.ts";
import { newRecord } from "./references.ts";
import type { SelectedObject, SelectionResult, UnresolvedSelection } from "./select.ts";

/** A target of the spec with its record in the status. */
export interface TargetWithRecord {
  target: Target;
  ref: ObjectRef | Problem;
  record: TargetStatus;
}

export interface Targets {
  /** Targets that are written at once. */
  before: TargetWithRecord[];
  /** Targets that are written after the rollout. */
  after: TargetWithRecord[];
  /**
   * Records that stay unchanged: it is unknown whether the spec still means their objects, or the objects may not be
   * written.
   */
  kept: TargetOutcome[];
  /** The records in the status of all these targets. */
  recorded: ReadonlySet<TargetStatus>;
}

export function targetsOf(
  binding: SecretBinding,
  { objects, unresolved, closed }: Pick<SelectionResult, "objects" | "unresolved" | "closed">,
): Targets {
  // If two records are of one object, the one that owns something comes first: the other one only reports a problem.
  const records = (binding.status?.targets ?? []).toSorted((a, b) => Number(holds(b)) - Number(holds(a)));
  const recorded = new Set<TargetStatus>();
  const before = new Map<SelectedObject, TargetStatus>();
  const take = (object: SelectedObject, record: TargetStatus | undefined) => {
    if (record === undefined || recorded.has(record)) return;
    recorded.add(record);
    before.set(object, record);
  };
  const byId = new Map(records.toReversed().map((record) => [recordId(record), record]));
  for (const object of objects) if (!(object.ref instanceof Problem)) take(object, byId.get(idOf(object.ref)));
  // A target that can't be resolved now, by a mistake or a failure, keeps its old record: otherwise it would be
  // released.
  for (const object of objects) {
    if (!(object.ref instanceof Problem)) continue;
    const left = records.find((record) => !recorded.has(record) && isNamedBy(object.target, record, binding));
    take(object, left);
  }
  const named = objects.map((object): TargetWithRecord => {
    const { target, ref, selected } = object;
    const { selected: _, ...record } = before.get(object) ?? newRecord(binding, target, ref);
    return { target, ref, record: selected ? { ...record, selected } : record };
  });
  const kept = records.flatMap((record): TargetOutcome[] => {
    const why = recorded.has(record) ? undefined : [...unresolved, ...closed].find((each) => isMeant(each, record));
    if (why === undefined) return [];
    recorded.add(record);
    return [{ record, problem: why.problem }];
  });
  const isAfter = ({ target }: TargetWithRecord) => isAfterRollout(target);
  return { before: named.filter((each) => !isAfter(each)), after: named.filter(isAfter), kept, recorded };
}

const holds = ({ uid, created, paths, pendingPaths }: TargetStatus): boolean =>
  (uid ?? created ?? paths ?? pendingPaths) !== undefined;

/** Whether a target may name the object of a record, judged without the cluster: so for either scope of its kind. */
function isNamedBy(target: Target, record: TargetStatus, { metadata }: SecretBinding): boolean {
  const where = [undefined, target.namespace ?? metadata.namespace];
  return isSameKind(target, record) && record.name === target.name && where.includes(record.namespace);
}

/** Whether a target with unknown objects may mean the object of a record. */
function isMeant({ target, namespace, name }: UnresolvedSelection, record: TargetStatus): boolean {
  const isThere = namespace === undefined || namespace === record.namespace;
  return isSameKind(target, record) && isThere && (name === undefined || name === record.name);
}
