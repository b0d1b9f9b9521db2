/**
 * The result of `inlay render`: the shape of its JSON and YAML, which other programs read too; and the same shape with sealed values, until
 * it is printed. Pure.
 */
import type { SecretBinding } from "../api/binding.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { type Advice, reasonOf } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";
import type { NotMade } from "./claims.ts";
import type { Mistake } from "./documents.ts";

export interface RenderedField<V> {
  path: string;
  /** The source values that it uses, such as `bucket/accessKeyID`. */
  from: string[];
  /** The value of the target in the files. Absent if there is none, or if the target is not in the files. */
  before?: V;
  /** The value to write. Absent if there is a problem. */
  value?: V;
  /** Whether the target in the files has another value. Absent if it is not in the files. */
  changes?: boolean;
  problem?: Advice;
}

export interface RenderedTarget<V> {
  apiVersion: string;
  kind: string;
  namespace?: string;
  /** Absent if it is unknown which objects the target selects. */
  name?: string;
  /** The binding creates the object. */
  creates: boolean;
  /** With `creates`: which existing objects the binding adopts. */
  adopts?: "Equal" | "Any";
  /** It is written after the rollout: when every workload has rolled out for the values. */
  when?: "AfterRollout";
  /** The object is in the files. */
  inFiles: boolean;
  /** All of its fields would be written; otherwise none is. */
  written: boolean;
  problem?: Advice;
  notes: string[];
  fields: RenderedField<V>[];
}

export interface RenderedBinding<V> {
  /** The composition; absent for a binding in the files. */
  composition?: string;
  claim?: string;
  entry?: string;
  /** The SecretBinding as Inlay would create it. */
  binding: { apiVersion: string; kind: string; metadata: object; spec: SecretBinding["spec"] };
  notes: string[];
  /** The SecretGrants that it needs, if the files contain no grants at all. */
  grants?: Advice[];
  targets: RenderedTarget<V>[];
}

export interface Rendering<V> {
  bindings: RenderedBinding<V>[];
  notMade: ({ composition: string; claim: string; entry: string } & Advice)[];
  notes: string[];
  mistakes: Mistake[];
}

export type SealedRendering = Rendering<SecretValue<JsonValue>>;
/** The printed form. */
export type OpenRendering = Rendering<JsonValue>;

/** Replaces every value, unless values are requested. */
export const HIDDEN = "(hidden)";

export const notMadeOf = ({ problem, ...where }: NotMade): SealedRendering["notMade"][number] => ({
  ...where,
  ...reasonOf(problem),
});

/** With the values of fields, or with HIDDEN in place of each. */
export function opened(rendering: SealedRendering, showValues: boolean): OpenRendering {
  const open = (value: SecretValue<JsonValue>): JsonValue => (showValues ? value.reveal() : HIDDEN);
  const fieldOf = (field: RenderedField<SecretValue<JsonValue>>): RenderedField<JsonValue> => {
    const { path, from, before, value, ...rest } = field;
    return { path, from, ...(before && { before: open(before) }), ...(value && { value: open(value) }), ...rest };
  };
  return {
    ...rendering,
    bindings: rendering.bindings.map((each) => ({
      ...each,
      targets: each.targets.map((target) => ({ ...target, fields: target.fields.map(fieldOf) })),
    })),
  };
}
