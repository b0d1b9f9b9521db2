/** The objects that a binding's targets are come in, with what status records; each goes out with its record. Pure. */

import type { Members, Unknown } from "./members.ts";
import { recordId, type SecretBinding, type TargetStatus } from "./model/binding.ts";
import { idOf, parseApiVersion } from "./model/kube-object.ts";
import type { TargetOutcome } from "./model/outcome.ts";
import { Problem } from "./model/problem.ts";
import { newRecord } from "./resolve/references.ts";
import type { Named } from "./target.ts";

export interface Targets {
  named: Named[];
  /** Records of objects of which it can't be told whether they are still meant: they stay as they are. */
  kept: TargetOutcome[];
  /** The records in status of all these. */
  recorded: ReadonlySet<TargetStatus>;
}

export function targetsOf(binding: SecretBinding, { members, unknown }: Pick<Members, "members" | "unknown">): Targets {
  const records = binding.status?.targets ?? [];
  const known = new Map(records.map((record) => [recordId(record), record]));
  const recorded = new Set<TargetStatus>();
  const named = members.map(({ target, ref, selected }): Named => {
    const fresh = newRecord(binding, target, ref);
    const before = known.get(ref instanceof Problem ? recordId(fresh) : idOf(ref));
    if (before !== undefined) recorded.add(before);
    const { selected: _, ...record } = before ?? fresh;
    return { target, ref, record: selected ? { ...record, selected } : record };
  });
  const kept = records.flatMap((record): TargetOutcome[] => {
    const why = recorded.has(record) ? undefined : unknown.find((each) => isMeant(each, record));
    if (why === undefined) return [];
    recorded.add(record);
    return [{ record, problem: why.problem }];
  });
  return { named, kept, recorded };
}

/** Whether a target of which it is not known which objects it is may mean that of a record. */
function isMeant({ target, namespace }: Unknown, record: TargetStatus): boolean {
  return (
    record.kind === target.kind &&
    parseApiVersion(record.apiVersion).group === parseApiVersion(target.apiVersion).group &&
    (namespace === undefined || namespace === record.namespace)
  );
}
