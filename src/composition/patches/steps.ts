/** What compiled transforms are: single steps, and all of a patch together. */
import type { JsonValue } from "../../apimachinery/objects.ts";
import type { GoValue } from "./go/value.ts";
import type { ConcretePath } from "./path.ts";

/** What a transform does, and the texts that the composition gives in it. */
export interface Step {
  apply(value: GoValue): GoValue;
  constants: readonly string[];
  /** Whether the result is one of those that the composition lists. */
  isListed?: boolean;
  /** The fields of each element, where the step makes a list of objects. */
  elements?: readonly ElementField[];
}

/** A field of each element, and whether the composition lists all values that it can have. */
export interface ElementField {
  readonly writes: ConcretePath;
  readonly isListed: boolean;
}

export interface CompiledTransforms {
  /** Throws Problem("InvalidValue") that says which transform failed and why, never a value. The caller adds the place and path. */
  apply(value: JsonValue): JsonValue;
  /** All texts that the composition itself gives in them: formats, map values, results, replacements, and what is in nested JSON. */
  constants: readonly string[];
  /** Whether the composition lists all results that there can be. */
  isListed: boolean;
  /** The fields of each element, where the last transform is forEach. */
  elements: readonly ElementField[] | undefined;
}
