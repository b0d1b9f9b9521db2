/** Decides whether a binding restarts a workload whose pods refer to an object that it reads or writes. Pure. */
import { fieldsOfTarget, isAfterRollout, type SecretBinding } from "../api/binding.ts";
import { type Group, groupsOf } from "../api/rollout.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { matchesLabels } from "../apimachinery/label-selector.ts";
import { isSameKind } from "../apimachinery/objects.ts";
import { type ReadTemplate, usesBySource } from "../sources/uses.ts";
import { WORKLOAD_KINDS } from "../workloads/workload.ts";
import { type Copy, idOf, type Reference, sourcesBehind } from "./copies.ts";
import { type Chosen, waysOf } from "./rollout.ts";
import { sourcesAt, type Traced, type WorkloadTrace } from "./trace-result.ts";

export interface Referrer extends Pick<WorkloadTrace, "apiVersion" | "kind" | "name" | "owner"> {
  namespace: string;
  /** The object that its pods refer to: the traced object, or a copy of its values. */
  object: Traced;
  references: readonly Reference[];
  /** The labels of the workload, not of its pods. */
  labels: Readonly<Record<string, string>>;
  /** The uids of its owners. */
  owners: readonly string[];
}

/** Whether the binding restarts a workload when a value of the traced object changes that the workload depends on. */
export function restarterOf(
  binding: SecretBinding,
  traced: Traced,
  copies: readonly Copy[],
  readTemplate: ReadTemplate,
): (workload: Referrer) => boolean {
  const { metadata, spec, status } = binding;
  const { rollout } = spec;
  const names = sourcesAt(binding, traced);
  const copyAt = new Map(copies.flatMap((copy) => (copy.binding === binding ? [[idOf(copy.object), copy]] : [])));
  const tracedCopy = copyAt.get(idOf(traced));
  /** The sources that change together with the traced object. A copy changes when one of its sources does. */
  const changing = new Set([...names, ...(tracedCopy ? sourcesBehind(tracedCopy) : [])]);
  if (rollout === undefined || changing.size === 0) return () => false;
  const before = spec.targets.filter((target) => !isAfterRollout(target));
  const uses = usesBySource({ ...binding, spec: { ...spec, targets: before } }, readTemplate);
  const hasFields = before.some((target) => fieldsOfTarget(target).length > 0);
  const isUsed = !hasFields || [...changing].some((name) => (uses.get(name) ?? []).length > 0);
  const owners = new Set((status?.targets ?? []).flatMap(({ uid }) => uid ?? []));
  /** By consumersOf, consumersOfTargets or ownedByTargets. */
  const isFound = (group: Group, { object, namespace, ...workload }: Referrer): boolean => {
    const { consumersOf = [], consumersOfTargets, kinds, ownedByTargets } = group;
    if (!kinds.some((kind) => isKind(workload, kind))) return false;
    const ways = waysOf(group);
    const references = workload.references.filter(({ by }) => ways?.includes(by) ?? true);
    const isSource = idOf(object) === idOf(traced) && consumersOf.some((name) => names.includes(name));
    if (isSource && references.length > 0) return true;
    const copy = consumersOfTargets ? copyAt.get(idOf(object)) : undefined;
    const behind = copy && references.flatMap(({ keys }) => sourcesBehind(copy, keys));
    if (behind?.some((name) => changing.has(name))) return true;
    const isOwned = namespace === metadata.namespace && workload.owners.some((uid) => owners.has(uid));
    return isUsed && isOwned && ownedByTargets === true;
  };
  const isNamed = ({ targets = [] }: Group, workload: Referrer): boolean =>
    isUsed && targets.some((target) => isChosen(workload, target, metadata.namespace));
  return (workload) => groupsOf(rollout).some((group) => isFound(group, workload) || isNamed(group, workload));
}

function isChosen(
  workload: Referrer,
  { apiVersion, kind, namespace, name, selector }: Chosen,
  own: string | undefined,
): boolean {
  if (!isKind(workload, kind, apiVersion) || workload.namespace !== (namespace ?? own)) return false;
  if (name !== undefined) return workload.name === name;
  const { names, exceptNames, ...labels } = selector ?? {};
  return nameMatcher(names, exceptNames)(workload.name) && matchesLabels(labels, workload.labels);
}

const KNOWN: Readonly<Record<string, { apiVersion: string }>> = WORKLOAD_KINDS;

/** In any version. */
const isKind = (
  workload: Pick<Referrer, "apiVersion" | "kind">,
  kind: string,
  apiVersion = KNOWN[kind]?.apiVersion,
): boolean => apiVersion !== undefined && isSameKind(workload, { apiVersion, kind });
