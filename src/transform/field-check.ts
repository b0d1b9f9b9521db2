/** Checks a field against the schema of its target without a value: its path, and the type that its value will have. Pure. */
import type { Field } from "../api/binding.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import type { JsonValue } from "../apimachinery/objects.ts";
import type { OpenApiSchema, ResolveRef } from "../apimachinery/openapi.ts";
import { type As, inferAs } from "./convert.ts";
import { checkPath, schemaIn } from "./schema-check.ts";

/** A value of each type that is known from `as` alone. */
const SAMPLES: Readonly<Record<As, JsonValue | undefined>> = {
  string: "",
  integer: 0,
  number: 0,
  boolean: true,
  bytes: "",
  json: undefined,
  yaml: undefined,
};

/** Throws Problem: InvalidPath, UnknownField or TypeMismatch. */
export function checkFieldType(field: Field, root: OpenApiSchema, resolve: ResolveRef): void {
  const path = FieldPath.parse(field.path);
  checkPath(path, sampleOf(field, schemaIn(root, resolve)(path)), root, resolve);
}

function sampleOf({ from, as }: Field, schema: OpenApiSchema | undefined): { value?: JsonValue; isBytes?: boolean } {
  // All keys of a source: an object.
  if (from !== undefined && from.key === undefined && from.fieldPath === undefined) return { value: {} };
  const isText = from?.key !== undefined && from.pointer === undefined;
  const type = as ?? (isText ? (inferAs(schema, "") ?? "string") : undefined);
  const value = type && SAMPLES[type];
  return value === undefined ? {} : { value, isBytes: type === "bytes" };
}
