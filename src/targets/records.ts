/** Matches the objects of a binding's targets with their records in status. Pure. */
import { isAfterRollout, recordId, type SecretBinding, type Target, type TargetStatus } from "../api/binding.ts";
import { idOf, isSameKind, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { TargetOutcome } from "./outcome.ts";
import { newRecord } from "./references.ts";
import type { SelectedObject, SelectionResult, UnresolvedSelection } from "./select.ts";

/** A target of the spec, and what status says of it. */
export interface TargetWithRecord {
  target: Target;
  ref: ObjectRef | Problem;
  record: TargetStatus;
}

export interface Targets {
  /** Those that are written at once. */
  before: TargetWithRecord[];
  /** Those that are written after the rollout. */
  after: TargetWithRecord[];
  /** Records of objects of which it can't be told whether they are still meant, or that may not be written: they stay as they are. */
  kept: TargetOutcome[];
  /** The records in status of all these. */
  recorded: ReadonlySet<TargetStatus>;
}

export function targetsOf(
  binding: SecretBinding,
  { objects, unresolved, closed }: Pick<SelectionResult, "objects" | "unresolved" | "closed">,
): Targets {
  // Of two of one object, that goes first which holds something: the other one only says what is wrong.
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
  // What can't be told to be an object now, by a mistake or a failure, is what it was: else it would be released.
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

/** Whether a record is of what a target names, as far as can be told without the cluster: of no namespace, of either scope. */
function isNamedBy(target: Target, record: TargetStatus, { metadata }: SecretBinding): boolean {
  const where = [undefined, target.namespace ?? metadata.namespace];
  return isSameKind(target, record) && record.name === target.name && where.includes(record.namespace);
}

/** Whether a target of which it is not known which objects it is may mean that of a record. */
function isMeant({ target, namespace, name }: UnresolvedSelection, record: TargetStatus): boolean {
  const isThere = namespace === undefined || namespace === record.namespace;
  return isSameKind(target, record) && isThere && (name === undefined || name === record.name);
}
