/** Names for the parts of a BindingComposition. */
import type { BindingComposition } from "./binding-composition.ts";

export type { BindingComposition };

export type CompositionSpec = BindingComposition["spec"];
export type BindingTemplate = CompositionSpec["bindings"][number];
export type PatchSet = NonNullable<CompositionSpec["patchSets"]>[number];
/** The API server accepts any object: src/composition/patches/ checks it. */
export type Patch = PatchSet["patches"][number];
