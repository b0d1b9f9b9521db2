/** Names for the parts of a BindingComposition. */
import type { BindingComposition, Patch } from "./binding-composition.ts";

export type { BindingComposition, Patch };

export type CompositionSpec = BindingComposition["spec"];
export type BindingTemplate = CompositionSpec["bindings"][number];
export type PatchSet = NonNullable<CompositionSpec["patchSets"]>[number];
export type Transform = NonNullable<Patch["transforms"]>[number];
