/** Describes the kinds of the objects in files, by the CRDs in the files or else by the objects. Pure. */
import { at, fieldsAt, listAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import { apiVersionOf, isSameKind, type JsonObject, parseApiVersion, type Resource } from "../apimachinery/objects.ts";
import type { OpenApiSchema, ResolveRef } from "../apimachinery/openapi.ts";

export interface Kinds {
  resourceOf(apiVersion: string, kind: string): Resource;
  /** Undefined if no CRD defines the kind, and no cluster serves it. */
  known(apiVersion: string, kind: string): Resource | undefined;
  /** Undefined if no object and no CRD has this kind. */
  byPlural(apiVersion: string, plural: string): Resource | undefined;
  /** Undefined if it is unknown. */
  schemaOf(resource: Resource): { root: OpenApiSchema; resolve: ResolveRef } | undefined;
}

/** The kinds that a cluster serves. */
export type ServedKinds = Pick<Kinds, "known" | "byPlural" | "schemaOf">;

/** The cluster-scoped kinds that every cluster has. */
const OF_CLUSTER = new Set(
  [
    "Namespace Node PersistentVolume ClusterRole ClusterRoleBinding CustomResourceDefinition APIService StorageClass",
    "VolumeAttachment CSIDriver CSINode IngressClass PriorityClass RuntimeClass MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    "CertificateSigningRequest FlowSchema PriorityLevelConfiguration BindingComposition",
  ].flatMap((line) => line.split(" ")),
);

const resolve: ResolveRef = () => undefined;
const texts = (format?: string): OpenApiSchema => ({
  type: "object",
  additionalProperties: { type: "string", ...(format && { format }) },
});
const ANY: OpenApiSchema = { "x-kubernetes-preserve-unknown-fields": true };
/** Schemas of the two built-in kinds whose values must be strings or base64. */
const SCHEMAS: Readonly<Record<string, OpenApiSchema>> = {
  Secret: {
    type: "object",
    properties: { metadata: ANY, type: { type: "string" }, data: texts("byte"), immutable: ANY },
  },
  ConfigMap: {
    type: "object",
    properties: { metadata: ANY, data: texts(), binaryData: texts("byte"), immutable: ANY },
  },
};

/** The kind that a CRD defines. */
interface Defined extends Omit<Resource, "version"> {
  readonly versions: readonly JsonObject[];
}

/** `served` are kinds of a cluster, which the CRDs among the objects replace. */
export function kindsOf(objects: readonly JsonObject[], served?: ServedKinds): Kinds {
  const defined = objects.filter(isCrd).map(definedBy);
  const crdOf = (apiVersion: string, kind: string) =>
    defined.find((each) => each.kind === kind && each.group === parseApiVersion(apiVersion).group);
  const known = new Map<string, Resource>();
  const resourceOf = (apiVersion: string, kind: string): Resource => {
    return getOrInsert(known, `${apiVersion} ${kind}`, () => find(apiVersion, kind));
  };
  const find = (apiVersion: string, kind: string): Resource => {
    const { group, version } = parseApiVersion(apiVersion);
    const crd = crdOf(apiVersion, kind);
    const known = crd === undefined ? served?.known(apiVersion, kind) : undefined;
    if (known !== undefined) return known;
    const ofKind = objects.filter((each) => isOfKind(each, apiVersion, kind));
    return {
      group,
      version,
      kind,
      plural: crd?.plural ?? pluralOf(kind),
      namespaced: crd?.namespaced ?? isNamespaced(group, kind, ofKind),
      hasStatus: crd?.hasStatus ?? false,
    };
  };
  return {
    resourceOf,
    byPlural(apiVersion, plural) {
      const { group } = parseApiVersion(apiVersion);
      const present = objects.filter((each) => parseApiVersion(String(each["apiVersion"])).group === group);
      const kinds = [...defined.filter((each) => each.group === group), ...present];
      return (
        kinds.map(({ kind }) => resourceOf(apiVersion, String(kind))).find((each) => each.plural === plural) ??
        served?.byPlural(apiVersion, plural)
      );
    },
    known: (apiVersion, kind) =>
      crdOf(apiVersion, kind) === undefined ? served?.known(apiVersion, kind) : resourceOf(apiVersion, kind),
    schemaOf(resource) {
      const { group, version, kind } = resource;
      const builtIn = group === "" && Object.hasOwn(SCHEMAS, kind) ? SCHEMAS[kind] : undefined;
      const found = crdOf(apiVersionOf(resource), kind)?.versions.find(({ name }) => name === version);
      const schema = builtIn ?? at(found, "schema", "openAPIV3Schema");
      if (!isObject(schema) || (builtIn !== undefined && served !== undefined)) return served?.schemaOf(resource);
      const root = { ...schema, "x-kubernetes-group-version-kind": [{ group, version, kind }] } as OpenApiSchema;
      return { root, resolve };
    },
  };
}

export function servedKinds(
  resources: readonly Resource[],
  schemaOf: Kinds["schemaOf"] = () => undefined,
): ServedKinds {
  return {
    known: (apiVersion, kind) => resources.find((each) => apiVersionOf(each) === apiVersion && each.kind === kind),
    byPlural(apiVersion, plural) {
      const { group } = parseApiVersion(apiVersion);
      return resources.find((each) => each.group === group && each.plural === plural);
    },
    schemaOf,
  };
}

export const isCrd = (object: JsonObject): boolean =>
  isOfKind(object, "apiextensions.k8s.io/v1", "CustomResourceDefinition");

export function isOfKind(object: JsonObject, apiVersion: string, kind: string): boolean {
  return isSameKind({ apiVersion: String(object["apiVersion"]), kind: String(object["kind"]) }, { apiVersion, kind });
}

function definedBy(crd: JsonObject): Defined {
  const spec = fieldsAt(crd, "spec");
  const { kind = "", plural = "" } = fieldsAt(spec, "names");
  const versions = listAt(spec, "versions").filter(isObject);
  return {
    group: String(spec["group"] ?? ""),
    kind: String(kind),
    plural: String(plural),
    namespaced: spec["scope"] !== "Cluster",
    hasStatus: versions.some((each) => at(each, "subresources", "status") !== undefined),
    versions,
  };
}

/** A group with a dot usually belongs to CRDs. Without the CRD, only the objects show the scope. */
function isNamespaced(group: string, kind: string, objects: readonly JsonObject[]): boolean {
  if (OF_CLUSTER.has(kind)) return false;
  const isBuiltIn = !group.includes(".") || group === "inlay.dev";
  return isBuiltIn || objects.length === 0 || objects.some((each) => at(each, "metadata", "namespace") !== undefined);
}

function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/[^aeiou]y$/.test(name)) return `${name.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh)$/.test(name) ? `${name}es` : `${name}s`;
}
