/**
 * Finds the Secrets and ConfigMaps that bindings with a rollout write. Pods that refer to such a copy depend on the source values of the
 * copy.
 */
import { isAfterRollout, type SecretBinding, type Target } from "../api/binding.ts";
import { digestParts, groupsOf } from "../api/rollout.ts";
import { isSameKind } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { UsesOfKeys } from "../rollout/discover/written-values.ts";
import type { PodReference } from "../workloads/pod-references.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import { recordMatcher } from "./targets.ts";
import { sourcesAt, type Traced } from "./trace-result.ts";

export interface Copy {
  binding: SecretBinding;
  object: Traced;
  /** The source values of each of its keys. */
  uses: UsesOfKeys;
  /** The binding restarts the consumers of its targets. */
  isConsumed: boolean;
}

/** How a pod refers to an object, and which keys it names this way; all keys if undefined. */
export type Reference = Pick<PodReference, "by" | "keys">;

type WrittenValues = typeof import("../rollout/discover/written-values.ts");

const KINDS = ["Secret", "ConfigMap"] as const;

/** Loads the template engine only if a binding writes such an object, which is rare. */
export async function copiesOf(bindings: readonly SecretBinding[]): Promise<Copy[]> {
  const writing = bindings.filter(({ spec }) => spec.rollout && spec.targets.some((target) => kindOf(target)));
  if (writing.length === 0) return [];
  const written = await import("../rollout/discover/written-values.ts");
  return writing.flatMap((binding) => copiesBy(binding, written));
}

/** Uses the records in status, which also name objects in namespaces that a selector matches. */
function copiesBy(binding: SecretBinding, { usesOfFields, writtenUses }: WrittenValues): Copy[] {
  const { metadata, spec, status } = binding;
  const ofFields = finish(usesOfFields(binding));
  // It restarts nothing.
  if (ofFields instanceof Problem) return [];
  const groups = spec.rollout === undefined ? [] : groupsOf(spec.rollout);
  const isConsumed = groups.some(({ consumersOfTargets }) => consumersOfTargets);
  const found = new Map<string, Copy>();
  for (const target of spec.targets) {
    const kind = kindOf(target);
    // A target that is written after the rollout restarts nothing.
    if (kind === undefined || isAfterRollout(target)) continue;
    const uses = writtenUses(ofFields, target);
    for (const { namespace = metadata.namespace as string, name } of status?.targets?.filter(
      recordMatcher(target, binding),
    ) ?? []) {
      const object = { kind, namespace, name };
      if (!found.has(idOf(object))) found.set(idOf(object), { binding, object, uses, isConsumed });
    }
  }
  return [...found.values()];
}

const kindOf = (target: Target) => KINDS.find((kind) => isSameKind(target, { apiVersion: "v1", kind }));

export const idOf = ({ kind, namespace, name }: Traced): string => `${namespace}/${kind}/${name}`;

/** The copies of an object for which bindings restart workloads, by the ids of the copies. Several bindings may write one copy. */
export function consumedCopies(copies: readonly Copy[], source: Traced): Map<string, [Copy, ...Copy[]]> {
  const found = new Map<string, [Copy, ...Copy[]]>();
  for (const copy of copies) {
    const names = sourcesAt(copy.binding, source);
    const isOfIt = sourcesBehind(copy).some((name) => names.includes(name));
    if (!copy.isConsumed || !isOfIt || idOf(copy.object) === idOf(source)) continue;
    const known = found.get(idOf(copy.object));
    if (known === undefined) found.set(idOf(copy.object), [copy]);
    else known.push(copy);
  }
  return found;
}

/** The names of the sources of some keys of a copy; of all keys if `keys` is undefined. */
export const sourcesBehind = ({ uses }: Copy, keys?: readonly string[]): string[] =>
  uses(keys).map((use) => digestParts(use).source);

/** The keys of a source that pods use through a copy, or `*` for all of them. */
export function keysBehind({ binding, uses }: Copy, source: Traced, references: readonly Reference[]): string[] {
  const names = sourcesAt(binding, source);
  const taken = references.flatMap(({ keys }) => uses(keys)).map(digestParts);
  return taken.flatMap((each) => (names.includes(each.source) ? [each.key] : []));
}
