/** Compiles compositions and creates claims for unit tests, from the fields that a test needs. */
import type { CompositionSpec, Patch } from "../../../src/api/composition.ts";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { throwFirst } from "../../../src/apimachinery/problem.ts";
import type { ClaimKind } from "../../../src/composition/allowed-paths.ts";
import type { Claim } from "../../../src/composition/claim.ts";
import { type CompiledComposition, compileComposition } from "../../../src/composition/compile.ts";
import { type ComposedBinding, type ComposedEntry, composeBinding } from "../../../src/composition/compose.ts";

export const SHOPS: ClaimKind = { group: "example.com", kind: "Shop", namespaced: true };
export const SECRETS: ClaimKind = { group: "", kind: "Secret", namespaced: true };
export const NAMESPACES: ClaimKind = { group: "", kind: "Namespace", namespaced: false };
export const CLUSTERS: ClaimKind = { group: "example.com", kind: "Cluster", namespaced: false };

export const BASE = {
  spec: {
    sources: [{ secret: { name: "bucket" } }],
    targets: [
      {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        name: "harbor",
        fields: [{ path: "spec.key", from: { source: "bucket", key: "key" } }],
      },
    ],
  },
};

export function specOf(patches: Patch[] = [], more: object = {}, base: object = BASE): CompositionSpec {
  return {
    serviceAccount: { namespace: "inlay-system", name: "inlay-compositions" },
    for: { apiVersion: "example.com/v1", kind: "Shop" },
    reach: "ClaimNamespace",
    deletionPolicy: "Delete",
    bindings: [{ name: "s3", base: base as Record<string, unknown>, patches }],
    ...more,
  };
}

export const compiled = (spec: CompositionSpec, kind = SHOPS): CompiledComposition => compileComposition(spec, kind);

export const claimOf = (fields: JsonObject = {}, more: Partial<Claim> = {}): Claim => ({
  apiVersion: "example.com/v1",
  kind: "Shop",
  name: "shop",
  namespace: "team",
  uid: "uid-1",
  fields,
  ...more,
});

/** What the first entry of a composition makes of a claim. */
export function entryOf(spec: CompositionSpec, claim = claimOf(), kind = SHOPS): ComposedEntry {
  const composition = compiled(spec, kind);
  const [binding] = composition.bindings;
  if (binding === undefined) throw new Error("the composition has no binding");
  return composeBinding(composition, binding, claim);
}

/** The first binding of a composition for a claim. Throws the problems. */
export function composed(spec: CompositionSpec, claim = claimOf(), kind = SHOPS): ComposedBinding {
  const { composed: binding, problems } = entryOf(spec, claim, kind);
  throwFirst(problems);
  return binding as ComposedBinding;
}
