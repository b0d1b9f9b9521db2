/** Defines the plan of a target: its fields with their values. Types only. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { MissingValue, Problem } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";

export interface PlannedField {
  readonly path: FieldPath;
  readonly value: SecretValue<JsonValue>;
  /** The value is bytes in base64. */
  readonly isBytes?: boolean;
  /** The value may contain a value of a Secret. */
  readonly fromSecret: boolean;
  /** List elements that the path names are appended if they do not exist. */
  readonly append?: boolean;
}

/** A field whose value is missing. The policy says what happens to it. */
export interface OmittedField {
  readonly path: FieldPath;
  readonly why: MissingValue;
}

/** Fields in which more users can read a value of a Secret than in the Secret itself. */
export interface ReadableCopies {
  readonly paths: readonly string[];
  /** Who can read them and what to do. Equal for all objects of the kind. */
  readonly note: string;
}

/** All fields of one target, to be written in one request. */
export interface Plan {
  readonly fields: readonly PlannedField[];
  readonly omitted: readonly OmittedField[];
  /** Of the two parts of a ConfigMap that a field writes, the one for which there is no key. */
  readonly emptied?: readonly FieldPath[];
  /** The sources that the binding may read only because of a SecretGrant, and whose values are in `fields`. */
  readonly granted?: readonly string[];
  /** With mode: Once, the fields that were written before. Their current values don't matter. */
  readonly kept?: readonly FieldPath[];
  /** What is written is perhaps not what the author means. They prevent no write. */
  readonly warnings?: readonly Problem[];
  /** Unset if the binding acknowledges them. */
  readonly readable?: ReadableCopies;
}
