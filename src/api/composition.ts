/** Names for the parts of a BindingComposition. */
import type { BindingComposition } from "./binding-composition.ts";

export type { BindingComposition };

export type CompositionSpec = BindingComposition["spec"];
export type BindingTemplate = CompositionSpec["bindings"][number];
export type PatchSet = NonNullable<CompositionSpec["patchSets"]>[number];
export type Patch = PatchSet["patches"][number];
export type Transform = NonNullable<Patch["transforms"]>[number];
