/** Types for the schemas that Kubernetes publishes at /openapi/v3: the part that limits the values of fields. */
import type { JsonValue } from "./objects.ts";

export type OpenApiType = "string" | "integer" | "number" | "boolean" | "object" | "array";

/** A schema without `type`, `$ref`, `oneOf` and `anyOf` accepts any value. */
export interface OpenApiSchema {
  $ref?: string;
  /** Kubernetes wraps a $ref with a description or default in allOf. CRDs use it for further rules. */
  allOf?: OpenApiSchema[];
  anyOf?: OpenApiSchema[];
  oneOf?: OpenApiSchema[];
  description?: string;
  type?: OpenApiType;
  format?: string;
  nullable?: boolean;
  default?: JsonValue;
  enum?: JsonValue[];
  /** In Go's syntax (RE2). It may match any part of the text. */
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  minProperties?: number;
  maxProperties?: number;
  properties?: Record<string, OpenApiSchema>;
  /** If absent on an object with properties, the object has no other fields. */
  additionalProperties?: boolean | OpenApiSchema;
  items?: OpenApiSchema;
  required?: string[];
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-embedded-resource"?: boolean;
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: string[];
  /** `atomic`: an apply of one field of the object replaces the whole object. */
  "x-kubernetes-map-type"?: "atomic" | "granular";
  /** CEL rules. */
  "x-kubernetes-validations"?: { rule: string; message?: string; messageExpression?: string; fieldPath?: string }[];
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
}

/**
 * The schema of the elements of a list. If the list itself is open, its elements are too, also in lists of lists: the API server prunes only
 * inside the fields that they declare.
 */
export function itemsOf({ items, ...list }: OpenApiSchema): OpenApiSchema | undefined {
  return list[OPEN] && items ? { ...items, [OPEN]: true } : items;
}

const OPEN = "x-kubernetes-preserve-unknown-fields";

/** The schema of a version of a kind. */
export interface KindSchema {
  root: OpenApiSchema;
  /** Follows `#/components/schemas/X`. */
  resolve: ResolveRef;
}

/** Finds the schema that a `$ref` such as `#/components/schemas/X` names. */
export type ResolveRef = (ref: string) => OpenApiSchema | undefined;
