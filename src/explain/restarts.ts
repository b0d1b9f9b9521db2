/** A binding and a workload whose pods refer to one of its sources come in; whether the binding restarts it goes out. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import { groupsOf } from "../api/rollout.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { matchesLabels } from "../apimachinery/label-selector.ts";
import { isSameKind } from "../apimachinery/objects.ts";
import { type ReadTemplate, usesBySource } from "../sources/uses.ts";
import { WORKLOAD_KINDS } from "../workloads/workload.ts";
import type { Chosen } from "./rollout.ts";
import { sourcesAt, type Traced, type WorkloadTrace } from "./trace-result.ts";

export interface Referrer extends Pick<WorkloadTrace, "apiVersion" | "kind" | "name"> {
  /** Its own, not those of its pods. */
  labels: Readonly<Record<string, string>>;
  /** The uids of its owners. */
  owners: readonly string[];
}

/** Whether the binding restarts a workload when a value of the traced object changes that the workload depends on. */
export function restarterOf(
  binding: SecretBinding,
  traced: Traced,
  readTemplate: ReadTemplate,
): (workload: Referrer) => boolean {
  const { metadata, spec, status } = binding;
  const { rollout } = spec;
  const names = sourcesAt(binding, traced);
  if (rollout === undefined || names.length === 0) return () => false;
  const uses = usesBySource(binding, readTemplate);
  const hasFields = spec.targets.some(({ fields }) => fields.length > 0);
  const isUsed = !hasFields || names.some((name) => (uses.get(name) ?? []).length > 0);
  const owners = new Set((status?.targets ?? []).flatMap(({ uid }) => uid ?? []));
  const groups = groupsOf(rollout);
  return (workload) =>
    groups.some(({ consumersOf = [], kinds, ownedByTargets = false, targets = [] }) => {
      const isAmong = kinds.some((kind) => isKind(workload, kind));
      if (isAmong && consumersOf.some((name) => names.includes(name))) return true;
      if (isAmong && ownedByTargets && isUsed && workload.owners.some((uid) => owners.has(uid))) return true;
      return isUsed && metadata.namespace === traced.namespace && targets.some((target) => isChosen(workload, target));
    });
}

function isChosen(workload: Referrer, { apiVersion, kind, name, selector }: Chosen): boolean {
  if (!isKind(workload, kind, apiVersion)) return false;
  if (name !== undefined) return workload.name === name;
  const { names, exceptNames, ...labels } = selector ?? {};
  return nameMatcher(names, exceptNames)(workload.name) && matchesLabels(labels, workload.labels);
}

const KNOWN: Readonly<Record<string, { apiVersion: string }>> = WORKLOAD_KINDS;

/** In any version. */
const isKind = (workload: Referrer, kind: string, apiVersion = KNOWN[kind]?.apiVersion): boolean =>
  apiVersion !== undefined && isSameKind(workload, { apiVersion, kind });
