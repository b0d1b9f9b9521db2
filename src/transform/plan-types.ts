/** Defines the plan of a target: its fields with their values. Types only. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { MissingValue } from "../apimachinery/problem.ts";
import type { SecretValue } from "../apimachinery/secret-value.ts";

export interface PlannedField {
  readonly path: FieldPath;
  readonly value: SecretValue<JsonValue>;
  /** The value is bytes, in base64. */
  readonly isBytes?: boolean;
  /** A value of a Secret may have gone into it. */
  readonly fromSecret: boolean;
  /** Elements of lists that the path names and that are not there are appended. */
  readonly append?: boolean;
}

/** A field whose value is not there; its policy says what becomes of it. */
export interface LeftOut {
  readonly path: FieldPath;
  readonly why: MissingValue;
}

/** Fields in which more people can read a value of a Secret than in the Secret. */
export interface ReadableCopies {
  readonly paths: readonly string[];
  /** Who can, and what to do; the same for all objects of the kind. */
  readonly note: string;
}

/** All fields of one target, to be written in one request. */
export interface Plan {
  readonly fields: readonly PlannedField[];
  readonly leftOut: readonly LeftOut[];
  /** The sources that a SecretGrant let the binding read, and of which there are values in `fields`. */
  readonly granted?: readonly string[];
  /** Of a target that is written once: the fields that were. Nobody asks what stands there now. */
  readonly kept?: readonly FieldPath[];
  /** Unless the binding acknowledges them. */
  readonly readable?: ReadableCopies;
}
