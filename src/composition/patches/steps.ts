/** The types of compiled transforms: single steps, and all of a patch together. */
import type { JsonValue } from "../../apimachinery/objects.ts";
import type { GoValue } from "./go/value.ts";
import type { ConcretePath } from "./path.ts";
import type { Work } from "./work.ts";

/** A transform, and the texts that the composition contains in it. */
export interface Step {
  apply(value: GoValue, work: Work): GoValue;
  constants: readonly string[];
  /** Whether the composition lists all possible results. */
  isListed?: boolean;
  /** The fields of each element, if the step produces a list of objects. */
  elements?: readonly ElementField[];
}

/** A field of each element, and whether the composition lists all its possible values. */
export interface ElementField {
  readonly writes: ConcretePath;
  readonly isListed: boolean;
}

export interface CompiledTransforms {
  /** Throws Problem with the failed transform and the reason, never a value. The caller adds the place and path. */
  apply(value: JsonValue, work: Work): JsonValue;
  /** All texts that the composition contains in them: formats, map values, results, replacements, and texts in nested JSON. */
  constants: readonly string[];
  /** Whether the composition lists all possible results. */
  isListed: boolean;
  /** Whether there are none. */
  isNone: boolean;
  /** The fields of each element, if the last transform is forEach. */
  elements: readonly ElementField[] | undefined;
}
