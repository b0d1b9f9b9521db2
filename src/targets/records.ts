/** The objects that a binding's targets are come in, with what status records; each goes out with its record. Pure. */

import { recordId, type SecretBinding, type Target, type TargetStatus } from "../api/binding.ts";
import { idOf, isSameKind } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { TargetOutcome } from "./outcome.ts";
import { newRecord } from "./references.ts";
import type { Member, Members, Unknown } from "./select.ts";
import type { Named } from "./sync.ts";

export interface Targets {
  named: Named[];
  /** Records of objects of which it can't be told whether they are still meant, or that may not be written: they stay as they are. */
  kept: TargetOutcome[];
  /** The records in status of all these. */
  recorded: ReadonlySet<TargetStatus>;
}

export function targetsOf(
  binding: SecretBinding,
  { members, unknown, closed }: Pick<Members, "members" | "unknown" | "closed">,
): Targets {
  // Of two of one object, that goes first which holds something: the other one only says what is wrong.
  const records = (binding.status?.targets ?? []).toSorted((a, b) => Number(holds(b)) - Number(holds(a)));
  const recorded = new Set<TargetStatus>();
  const before = new Map<Member, TargetStatus>();
  const take = (member: Member, record: TargetStatus | undefined) => {
    if (record === undefined || recorded.has(record)) return;
    recorded.add(record);
    before.set(member, record);
  };
  const byId = new Map(records.toReversed().map((record) => [recordId(record), record]));
  for (const member of members) if (!(member.ref instanceof Problem)) take(member, byId.get(idOf(member.ref)));
  // What can't be told to be an object now, by a mistake or a failure, is what it was: else it would be released.
  for (const member of members) {
    if (!(member.ref instanceof Problem)) continue;
    const left = records.find((record) => !recorded.has(record) && isNamedBy(member.target, record, binding));
    take(member, left);
  }
  const named = members.map((member): Named => {
    const { target, ref, selected } = member;
    const { selected: _, ...record } = before.get(member) ?? newRecord(binding, target, ref);
    return { target, ref, record: selected ? { ...record, selected } : record };
  });
  const kept = records.flatMap((record): TargetOutcome[] => {
    const why = recorded.has(record) ? undefined : [...unknown, ...closed].find((each) => isMeant(each, record));
    if (why === undefined) return [];
    recorded.add(record);
    return [{ record, problem: why.problem }];
  });
  return { named, kept, recorded };
}

const holds = ({ uid, created, paths, acquiring }: TargetStatus): boolean =>
  (uid ?? created ?? paths ?? acquiring) !== undefined;

/** Whether a record is of what a target names, as far as can be told without the cluster: of no namespace, of either scope. */
function isNamedBy(target: Target, record: TargetStatus, { metadata }: SecretBinding): boolean {
  const where = [undefined, target.namespace ?? metadata.namespace];
  return isSameKind(target, record) && record.name === target.name && where.includes(record.namespace);
}

/** Whether a target of which it is not known which objects it is may mean that of a record. */
function isMeant({ target, namespace, name }: Unknown, record: TargetStatus): boolean {
  const isThere = namespace === undefined || namespace === record.namespace;
  return isSameKind(target, record) && isThere && (name === undefined || name === record.name);
}
