/** The claim as patches see it. Pure. */
import { fieldsAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject } from "../apimachinery/objects.ts";
import { type ClaimKind, isMetadataOnly } from "./allowed-paths.ts";

/** The object, or the fields of it that a composition needs. `namespace` is absent for a cluster-scoped object. */
export interface Claim {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly fields: JsonObject;
}

/** In these annotations, tools store the whole object, including the data of a Secret, or hashes of it. */
const COPIES: readonly string[] = [
  "kubectl.kubernetes.io/last-applied-configuration",
  // kapp
  "kapp.k14s.io/original",
  "kapp.k14s.io/original-diff",
  "kapp.k14s.io/original-diff-full",
  "kapp.k14s.io/original-diff-md5",
  // Rancher's Wrangler, also in K3s and RKE2
  "objectset.rio.cattle.io/applied",
  // Operators with k8s-objectmatcher
  "banzaicloud.com/last-applied",
];

/** The claim as an object that patches read. */
export function claimObject({ apiVersion, kind, name, namespace, uid, fields }: Claim): JsonObject {
  const all = fieldsAt(fields, "metadata");
  const isCore = !apiVersion.includes("/");
  const metadata = isCore && isMetadataOnly({ group: "", kind }) ? withoutData(all) : all;
  return { ...fields, apiVersion, kind, metadata: { ...metadata, name, ...(namespace && { namespace }), uid } };
}

function withoutData(metadata: JsonObject): JsonObject {
  const { annotations } = metadata;
  if (!isObject(annotations)) return metadata;
  const others = Object.entries(annotations).filter(([key]) => !COPIES.includes(key));
  return { ...metadata, annotations: Object.fromEntries(others) };
}

/** The namespace of a claim: its own, or for a Namespace that namespace. Undefined for other cluster-scoped objects. */
export const namespaceOfClaim = (
  { name, namespace }: Pick<Claim, "name" | "namespace">,
  { group, kind }: Pick<ClaimKind, "group" | "kind">,
): string | undefined => (group === "" && kind === "Namespace" ? name : namespace);
