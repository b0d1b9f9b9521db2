/** How GeneratedBindings recognizes and compares composed bindings. Pure. */
import type { SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import { sameJson } from "../../apimachinery/json.ts";
import { type DesiredBinding, metadataOf, ownersOf } from "../../composition/made-binding.ts";
import type { Generator } from "../generated-bindings.ts";
import type { OwnBinding } from "./composition-state.ts";

/** Labels and annotations of other users are ignored. */
function matches(
  { metadata, spec }: SecretBinding,
  desired: DesiredBinding,
  kept: readonly SecretBinding["spec"][],
): boolean {
  const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
  const has = (present: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>) =>
    Object.entries(wanted).every(([key, value]) => present[key] === value);
  return (
    has(labels, desired.labels) &&
    has(annotations, desired.annotations) &&
    ownersOf(desired).every(({ uid }) => ownerReferences.some((each) => each.uid === uid)) &&
    [desired.spec, ...kept].some((each) => sameJson(spec, each))
  );
}

/** `ownOf` returns what is known of a binding, whatever its present labels say. */
export const generatorOf = (
  composition: string,
  identity: string,
  ownOf: (binding: SecretBinding) => OwnBinding | undefined,
): Generator<DesiredBinding> => ({
  identity,
  fieldManager: "inlay-compositions",
  origin: `the BindingComposition ${composition}`,
  consequence: `although the BindingComposition ${composition} asks for it`,
  isForeign: (binding) => composedFrom(binding)?.composition !== composition && ownOf(binding) === undefined,
  // The name belonged to another claim before.
  isReplaced: (binding, { owner }) => (ownOf(binding) ?? composedFrom(binding))?.claimUID !== owner.uid,
  matches,
  metadataOf,
});
