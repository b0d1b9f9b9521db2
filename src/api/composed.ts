/** The labels and annotations of composed bindings. Any user may set them too: they prove nothing. */
import type { SecretBinding } from "./binding.ts";

export const COMPOSITION_LABEL = "inlay.dev/composition";
/** The name of the binding's entry in the composition. */
export const TEMPLATE_LABEL = "inlay.dev/composition-binding";
export const CLAIM_UID_LABEL = "inlay.dev/claim-uid";
/** `namespace/name` of the claim, or `name`. */
export const CLAIM_ANNOTATION = "inlay.dev/claim";
/** The fields (toFieldPath) for which patches found a value when the binding was last generated. */
export const PATCHED_ANNOTATION = "inlay.dev/patched-fields";

/** The origin of a composed binding, as its labels and annotations give it. */
interface ComposedFrom {
  readonly composition: string;
  readonly template: string;
  readonly claim: string;
  readonly claimUID: string;
}

/** Undefined unless the binding has all of these labels and annotations. */
export function composedFrom({ metadata }: Pick<SecretBinding, "metadata">): ComposedFrom | undefined {
  const { labels = {}, annotations = {} } = metadata;
  const [composition, template] = [labels[COMPOSITION_LABEL], labels[TEMPLATE_LABEL]];
  const [claim, claimUID] = [annotations[CLAIM_ANNOTATION], labels[CLAIM_UID_LABEL]];
  if (!composition || !template || !claim || !claimUID) return undefined;
  return { composition, template, claim, claimUID };
}

/** The fields for which patches found a value when the binding was last generated. */
export function patchedFields({ metadata }: Pick<SecretBinding, "metadata">): readonly string[] {
  try {
    const fields: unknown = JSON.parse(metadata.annotations?.[PATCHED_ANNOTATION] ?? "[]");
    return Array.isArray(fields) ? fields.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}
