/**
 * Workloads as a stream shows them come in; those that annotations are about go out. While a Job is made anew its copy stands for
 * it: a stream shows the copy before the Job goes, and the new one before the copy does. Pure.
 */
import type { Workload } from "../workloads/workload.ts";

interface Shown {
  name: string;
  version: { uid: string; workload?: Workload };
}

export function standing<T extends Shown>(workloads: readonly T[]): T[] {
  const names = new Set(workloads.map(({ name }) => name));
  return workloads.flatMap((each) => {
    const { isPassing, copied } = each.version.workload ?? {};
    if (copied === undefined) return isPassing ? [] : [each];
    const { name, uid } = copied;
    return names.has(name) ? [] : [{ ...each, name, version: { ...each.version, uid } }];
  });
}
