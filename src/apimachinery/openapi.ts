/** The part of OpenAPI v3 that Kubernetes publishes at /openapi/v3, as far as it says what may stand where. Types only. */
import type { JsonValue } from "./objects.ts";

export type OpenApiType = "string" | "integer" | "number" | "boolean" | "object" | "array";

/** A schema without `type` takes anything, unless it refers to another or lists types by oneOf or anyOf. */
export interface OpenApiSchema {
  $ref?: string;
  /** Kubernetes wraps a $ref that has a description or default beside it; CRDs put more rules here. */
  allOf?: OpenApiSchema[];
  anyOf?: OpenApiSchema[];
  oneOf?: OpenApiSchema[];
  description?: string;
  type?: OpenApiType;
  format?: string;
  nullable?: boolean;
  default?: JsonValue;
  enum?: JsonValue[];
  /** In Go's syntax (RE2), found anywhere in the text. */
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
  properties?: Record<string, OpenApiSchema>;
  /** Absent on an object with properties: no others. */
  additionalProperties?: boolean | OpenApiSchema;
  items?: OpenApiSchema;
  required?: string[];
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-embedded-resource"?: boolean;
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: string[];
  /** `atomic`: whoever applies one field of the object replaces all of it. */
  "x-kubernetes-map-type"?: "atomic" | "granular";
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
}

/** Finds the schema that a `$ref` such as `#/components/schemas/X` names. */
export type ResolveRef = (ref: string) => OpenApiSchema | undefined;
