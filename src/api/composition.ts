/** Names for the parts of a BindingComposition. */
import type { BindingComposition } from "./binding-composition.ts";

export type { BindingComposition };

/**
 * The label of the bindings that a composition makes: its name. Everyone who may write bindings may set it, so it shows what to
 * look for and decides nothing.
 */
export const COMPOSITION_LABEL = "inlay.dev/composition";

export type CompositionSpec = BindingComposition["spec"];
export type BindingTemplate = CompositionSpec["bindings"][number];
export type PatchSet = NonNullable<CompositionSpec["patchSets"]>[number];
export type Patch = PatchSet["patches"][number];
export type Transform = NonNullable<Patch["transforms"]>[number];
