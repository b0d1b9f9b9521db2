/** Describes a workload whose pods refer to a traced object, or to a copy of its values. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import { ALL_KEYS } from "../sources/uses.ts";
import { type Copy, idOf, keysBehind } from "./copies.ts";
import type { Referrer } from "./restarts.ts";
import type { Traced, WorkloadTrace } from "./trace-result.ts";

interface Restarter {
  binding: SecretBinding;
  restarts(workload: Referrer): boolean;
}

/** Undefined if the pods use no value of the traced object through a copy. `copies`: by the ids of their objects. */
export function workloadTrace(
  workload: Referrer,
  traced: Traced,
  copies: ReadonlyMap<string, readonly Copy[]>,
  restarters: readonly Restarter[],
): WorkloadTrace | undefined {
  const { apiVersion, kind, namespace, name, object, references, owner } = workload;
  const isCopy = idOf(object) !== idOf(traced);
  const keys = isCopy
    ? (copies.get(idOf(object)) ?? []).flatMap((copy) => keysBehind(copy, traced, references))
    : references.flatMap((each) => each.keys ?? [ALL_KEYS]);
  if (isCopy && keys.length === 0) return undefined;
  return {
    apiVersion,
    kind,
    ...(namespace !== traced.namespace && { namespace }),
    name,
    ...(isCopy && { copy: { kind: object.kind, name: object.name } }),
    references: [...new Set(references.map(({ by }) => by))].toSorted(),
    ...(!keys.includes(ALL_KEYS) && { keys: [...new Set(keys)].toSorted() }),
    ...(owner !== undefined && { owner }),
    restarts: restarters
      .filter(({ restarts }) => restarts(workload))
      .map(({ binding: { metadata, spec } }) => ({
        binding: `${metadata.namespace}/${metadata.name}`,
        suspended: spec.suspend === true || spec.rollout?.suspend === true,
      })),
  };
}
