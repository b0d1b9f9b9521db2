/** What transform makes and apply writes: the fields of one target with their values. Types only. */
import type { FieldPath } from "./field-path.ts";
import type { JsonValue } from "./kube-object.ts";
import type { SecretValue } from "./secret-value.ts";

export interface PlannedField {
  readonly path: FieldPath;
  readonly value: SecretValue<JsonValue>;
}

/** All fields of one target, to be written in one request. */
export interface Plan {
  readonly fields: readonly PlannedField[];
}
