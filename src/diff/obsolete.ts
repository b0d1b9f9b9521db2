/** Finds the bindings that compositions have made in the cluster and that the controller would delete: their entry or claim is gone. Pure. */
import { bindingKey, type StoredBinding } from "../api/binding.ts";
import { composedFrom } from "../api/composed.ts";
import type { BindingComposition } from "../api/composition.ts";
import { describeObject } from "../apimachinery/objects.ts";
import type { Composed } from "../render/claims.ts";

/** A binding of a composition that the controller would delete. */
export interface ObsoleteBinding {
  readonly composition: string;
  readonly binding: StoredBinding;
}

/** `compositions` are those that are not suspended and whose claims are known. `inFiles` are keys of bindings in the files. */
export function obsoleteBindings(
  { bindings, notMade }: Pick<Composed, "bindings" | "notMade">,
  compositions: readonly BindingComposition[],
  live: readonly StoredBinding[],
  inFiles: ReadonlySet<string>,
): ObsoleteBinding[] {
  const kinds = new Map(compositions.map(({ metadata, spec }) => [metadata.name, spec.for.kind]));
  const keys = new Set([...inFiles, ...bindings.map(({ binding }) => bindingKey(binding))]);
  // The controller keeps a binding that it can't compose now.
  const held = new Set(notMade.map(({ composition, claim, entry }) => entryId(composition, claim, entry)));
  return live.flatMap((binding) => {
    const from = composedFrom(binding);
    const kind = kinds.get(from?.composition ?? "");
    if (from === undefined || kind === undefined || binding.metadata.deletionTimestamp !== undefined) return [];
    const [name = "", namespace] = from.claim.split("/").reverse();
    const id = entryId(from.composition, describeObject(kind, namespace, name), from.template);
    return keys.has(bindingKey(binding)) || held.has(id) ? [] : [{ composition: from.composition, binding }];
  });
}

const entryId = (composition: string, claim: string, entry: string): string => [composition, claim, entry].join("|");
