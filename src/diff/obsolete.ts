/**
 * Matches the bindings that compositions make with those that they have made in the cluster, as the controller does: a binding keeps its
 * name, and one whose entry or claim is gone is deleted. Pure.
 */
import { bindingKey, type SecretBinding, type StoredBinding } from "../api/binding.ts";
import { composedFrom } from "../api/composed.ts";
import type { BindingComposition } from "../api/composition.ts";
import { describeObject } from "../apimachinery/objects.ts";
import type { BindingToRender, Composed } from "../render/claims.ts";

/** A binding of a composition that the controller would delete. */
export interface ObsoleteBinding {
  readonly composition: string;
  readonly binding: StoredBinding;
}

interface Matched {
  readonly made: readonly BindingToRender[];
  readonly obsolete: readonly ObsoleteBinding[];
}

/** `compositions` are those that are not suspended and whose claims are known. `inFiles` are keys of bindings in the files. */
export function matchComposed(
  composed: Pick<Composed, "bindings" | "notMade">,
  compositions: readonly BindingComposition[],
  live: readonly StoredBinding[],
  inFiles: ReadonlySet<string>,
): Matched {
  const kinds = new Map(compositions.map(({ metadata, spec }) => [metadata.name, spec.for.kind]));
  const existing = live.flatMap((binding) => {
    const from = composedFrom(binding);
    const kind = kinds.get(from?.composition ?? "");
    if (from === undefined || kind === undefined) return [];
    const [name = "", namespace] = from.claim.split("/").reverse();
    return [{ binding, ...from, id: entryId(from.composition, describeObject(kind, namespace, name), from.template) }];
  });
  const byEntry = new Map(existing.map((each) => [each.id, each]));
  const made = composed.bindings.map((each) => {
    const id = each.from && entryId(each.from.composition, each.from.claim, each.from.entry);
    const present = id === undefined ? undefined : byEntry.get(id);
    return present !== undefined && isKept(present, each.binding) ? named(each, present.binding.metadata.name) : each;
  });
  const keys = new Set([...inFiles, ...made.map(({ binding }) => bindingKey(binding))]);
  // The controller keeps a binding that it can't compose now.
  const held = new Set(composed.notMade.map(({ composition, claim, entry }) => entryId(composition, claim, entry)));
  const obsolete = existing.filter(
    ({ id, binding }) =>
      !keys.has(bindingKey(binding)) && !held.has(id) && binding.metadata.deletionTimestamp === undefined,
  );
  return { made, obsolete };
}

const entryId = (composition: string, claim: string, entry: string): string => [composition, claim, entry].join("|");

/** A binding in another namespace, or for a former claim of that name, is replaced. */
const isKept = ({ binding, claimUID }: { binding: StoredBinding; claimUID: string }, { metadata }: SecretBinding) =>
  binding.metadata.namespace === metadata.namespace && composedFrom({ metadata })?.claimUID === claimUID;

const named = (each: BindingToRender, name: string): BindingToRender => ({
  ...each,
  binding: { ...each.binding, metadata: { ...each.binding.metadata, name } },
});
