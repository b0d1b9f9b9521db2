/** How GeneratedBindings recognizes and compares the bindings that a composition makes. Pure. */
import type { SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import { sameJson } from "../../apimachinery/json.ts";
import { type MadeBinding, metadataOf, ownersOf } from "../../composition/made-binding.ts";
import type { Generator } from "../generated-bindings.ts";
import type { OwnBinding } from "./composition-state.ts";

/** Labels and annotations that others added are theirs. */
function matches(
  { metadata, spec }: SecretBinding,
  made: MadeBinding,
  kept: readonly SecretBinding["spec"][],
): boolean {
  const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
  const has = (present: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>) =>
    Object.entries(wanted).every(([key, value]) => present[key] === value);
  return (
    has(labels, made.labels) &&
    has(annotations, made.annotations) &&
    ownersOf(made).every(({ uid }) => ownerReferences.some((each) => each.uid === uid)) &&
    [made.spec, ...kept].some((each) => sameJson(spec, each))
  );
}

/** `ownOf` returns what is known of a binding, whatever its labels say by now. */
export const generatorOf = (
  composition: string,
  identity: string,
  ownOf: (binding: SecretBinding) => OwnBinding | undefined,
): Generator<MadeBinding> => ({
  identity,
  fieldManager: "inlay-compositions",
  origin: `the BindingComposition ${composition}`,
  consequence: `as the BindingComposition ${composition} says`,
  isOthers: (binding) => composedFrom(binding)?.composition !== composition && ownOf(binding) === undefined,
  // Another claim had that name before.
  isReplaced: (binding, { owner }) => (ownOf(binding) ?? composedFrom(binding))?.claimUID !== owner.uid,
  matches,
  metadataOf,
});
