/**
 * The result of `inlay render`: the shape of its JSON and YAML, which other programs read too; and how the values in a result, which are
 * sealed, are opened when it is printed. Pure.
 */
import type { SecretBinding } from "../api/binding.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import { type Advice, reasonOf } from "../apimachinery/problem.ts";
import { SecretValue } from "../apimachinery/secret-value.ts";
import type { WayOfTarget } from "../explain/explanation.ts";
import type { NotMade } from "./claims.ts";
import type { Mistake } from "./documents.ts";

export interface RenderedField {
  path: string;
  /** The source values that it uses, such as `bucket/accessKeyID`. */
  from: string[];
  /** The value of the target in the files. Absent if there is none, or if the target is not in the files. */
  before?: SecretValue<JsonValue>;
  /** The value to write. Absent if there is a problem. */
  value?: SecretValue<JsonValue>;
  /** Whether the target in the files has another value. Absent if it is not in the files. */
  changes?: boolean;
  problem?: Advice;
}

export interface RenderedTarget extends WayOfTarget {
  apiVersion: string;
  kind: string;
  namespace?: string;
  /** Absent if it is unknown which objects the target selects. */
  name?: string;
  /** The object is in the files. */
  inFiles: boolean;
  /** All of its fields would be written; otherwise none is. */
  written: boolean;
  problem?: Advice;
  notes: string[];
  fields: RenderedField[];
}

export interface RenderedBinding {
  /** The composition; absent for a binding in the files. */
  composition?: string;
  claim?: string;
  entry?: string;
  /** The SecretBinding as Inlay would create it. */
  binding: { apiVersion: string; kind: string; metadata: object; spec: SecretBinding["spec"] };
  notes: string[];
  /** The SecretGrants that it needs, if the files contain no grants at all. */
  grants?: Advice[];
  targets: RenderedTarget[];
}

export interface Rendering {
  bindings: RenderedBinding[];
  notMade: ({ composition: string; claim: string; entry: string } & Advice)[];
  notes: string[];
  mistakes: Mistake[];
}

/** Replaces every value, unless values are requested. */
export const HIDDEN = "(hidden)";

export const notMadeOf = ({ problem, ...where }: NotMade): Rendering["notMade"][number] => ({
  ...where,
  ...reasonOf(problem),
});

/** The printed form of a result. */
export type Opened<T> = T extends SecretValue<infer V> ? V : T extends object ? { [K in keyof T]: Opened<T[K]> } : T;

/** With all values, or with HIDDEN in place of each. */
export function opened<T>(result: T, showValues: boolean): Opened<T> {
  const open = (part: unknown): unknown => {
    if (part instanceof SecretValue) return showValues ? part.reveal() : HIDDEN;
    if (Array.isArray(part)) return part.map(open);
    return isObject(part) ? Object.fromEntries(Object.entries(part).map(([key, each]) => [key, open(each)])) : part;
  };
  return open(result) as Opened<T>;
}
