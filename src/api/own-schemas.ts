/** The schemas of Inlay's own kinds, by kind, as in their CRDs. */
import type { OpenApiSchema } from "../apimachinery/openapi.ts";
import composition from "./binding-composition-schema.json" with { type: "json" };
import binding from "./secret-binding-schema.json" with { type: "json" };
import grant from "./secret-grant-schema.json" with { type: "json" };
import connection from "./vault-connection-schema.json" with { type: "json" };

const schemas: Readonly<Record<string, unknown>> = {
  SecretBinding: binding,
  SecretGrant: grant,
  BindingComposition: composition,
  VaultConnection: connection,
};
export const OWN_SCHEMAS = new Map(Object.entries(schemas)) as ReadonlyMap<string, OpenApiSchema>;
