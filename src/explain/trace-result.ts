/**
 * The result of `inlay trace` for a Secret or ConfigMap: the shape of its JSON, which other programs read too; and functions that evaluate
 * single listed objects. Pure.
 */
import { fieldsOfTarget, type SecretBinding, type Target, type TargetStatus } from "../api/binding.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import { at, listAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import { isSameKind, type KubeObject } from "../apimachinery/objects.ts";
import { parseSources } from "../sources/registry.ts";
import type { NamedByConnection } from "../sources/source.ts";
import { type ReadTemplate, useInWords, usesOf } from "../sources/uses.ts";
import type { ReadState } from "./explanation.ts";
import { inWords, selectorInWords } from "./rollout.ts";
import { recordMatcher } from "./targets.ts";

export interface Traced {
  kind: "Secret" | "ConfigMap";
  namespace: string;
  name: string;
}

export interface Trace {
  object: Traced & ReadState & { resourceVersion?: string };
  /** SecretBindings that read it. */
  bindings: BindingTrace[];
  /** SecretBindings that write into it. */
  writers: { binding: string; fields: string[] }[];
  /** SecretGrants that permit bindings to read it. */
  grants: { name: string; from: string[] }[];
  /** First workloads whose pods refer to it, then workloads whose pods refer to copies that bindings with consumersOfTargets write. */
  workloads: WorkloadTrace[];
  /** ServiceAccounts of its namespace whose pods pull images with it. */
  serviceAccounts: string[];
  /** Ingresses and Gateways that use it as their certificate. */
  certificates: { kind: string; namespace: string; name: string }[];
  /** Connections to stores in its namespace that use it, such as `CA` or `SecretID`. */
  connections: { kind: string; name: string; uses: string[] }[];
  /** What could not be read, so that the lists above may be incomplete. */
  unreadable: string[];
}

export interface BindingTrace {
  /** Namespace and name. */
  binding: string;
  source: string;
  account: string;
  /** The reason of its condition Ready, if it was reconciled. */
  reason?: string;
  suspended: boolean;
  /** The fields that use it. The reason is that of the objects in the status of the binding, a problem first. */
  targets: {
    apiVersion: string;
    kind: string;
    object: string;
    reason?: string;
    fields: { path: string; keys: string[] }[];
  }[];
  /** Which workloads the binding restarts, in words. */
  restarts: string[];
}

export interface WorkloadTrace {
  apiVersion: string;
  kind: string;
  /** Omitted if it is the namespace of the traced object. */
  namespace?: string;
  name: string;
  /** The copy of its values that the pods refer to instead, in the workload's namespace. */
  copy?: { kind: string; name: string };
  /** Where its pods name it: env, envFrom, volume, projected, imagePullSecret, csi. */
  references: string[];
  /** Which keys of the traced object they use; omitted for all of them. */
  keys?: string[];
  /** The owner of a pod that belongs to no known workload. */
  owner?: string;
  /** The bindings that restart it when a value changes. Empty if no binding does. */
  restarts: { binding: string; suspended: boolean }[];
}

/** The names that a binding gives to the object as a source. */
export function sourcesAt(binding: SecretBinding, { kind, namespace, name }: Traced): string[] {
  return parseSources(binding).flatMap(({ name: source, data }) =>
    data?.kind === kind && data.namespace === namespace && data.name === name ? [source] : [],
  );
}

export function bindingTraces(binding: SecretBinding, traced: Traced, readTemplate: ReadTemplate): BindingTrace[] {
  const { metadata, spec, status } = binding;
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const sources = parseSources(binding);
  return sourcesAt(binding, traced).map((source) => ({
    binding: `${metadata.namespace}/${metadata.name}`,
    source,
    account: spec.serviceAccountName,
    ...(ready && { reason: ready.reason }),
    suspended: spec.suspend ?? false,
    targets: spec.targets.flatMap((target) => {
      const fields = fieldsOfTarget(target).flatMap((field) => {
        const uses = usesOf(sources, field, readTemplate).filter((use) => use.source === source);
        const keys = uses.map(({ of }) => useInWords(of));
        return keys.length === 0 ? [] : [{ path: field.path, keys }];
      });
      const where = target.namespaceSelector ? "" : `${target.namespace ?? metadata.namespace}/`;
      const { apiVersion, kind, name } = target;
      const reasons = (status?.targets ?? []).filter(recordMatcher(target, binding)).map(({ reason }) => reason);
      const reason = reasons.find((each) => each !== "Synced") ?? reasons[0];
      const object = `${where}${name ?? "(selected)"}`;
      return fields.length === 0 ? [] : [{ apiVersion, kind, object, ...(reason && { reason }), fields }];
    }),
    restarts: spec.rollout ? inWords(spec.rollout) : [],
  }));
}

/** The fields that a binding writes into the object, or wrote by its record. Undefined if there are none. */
export function writerTrace(
  { metadata, spec, status }: SecretBinding,
  traced: Traced,
): Trace["writers"][number] | undefined {
  const isIt = (each: Target | TargetStatus) =>
    isSameKind(each, { apiVersion: "v1", kind: traced.kind }) &&
    each.name === traced.name &&
    (each.namespace ?? metadata.namespace) === traced.namespace;
  const named = spec.targets.filter((target) => target.namespaceSelector === undefined && isIt(target));
  const recorded = (status?.targets ?? []).filter(isIt);
  if (named.length + recorded.length === 0) return undefined;
  const paths = [
    ...named.flatMap((target) => fieldsOfTarget(target).map(({ path }) => path)),
    ...recorded.flatMap(({ paths = [] }) => paths),
  ];
  return { binding: `${metadata.namespace}/${metadata.name}`, fields: [...new Set(paths)].sort() };
}

/** Who may read by a grant, in words. */
export function granteesOf({ from }: SecretGrant["spec"]): string[] {
  return from.map(({ namespace, namespaceUID, namespaceSelector, composition, serviceAccountName }) => {
    const account = serviceAccountName === undefined ? "any account" : `account ${serviceAccountName}`;
    if (composition !== undefined) return `${account} in bindings of BindingComposition ${composition}`;
    const uid = namespaceUID === undefined ? "" : ` with the uid ${namespaceUID}`;
    if (namespaceSelector === undefined) return `${account} of namespace ${namespace}${uid}`;
    return `${account} of namespaces that match ${selectorInWords(namespaceSelector)}`;
  });
}

export const pullsWith = (account: KubeObject, name: string): boolean =>
  listAt(account, "imagePullSecrets").some((each) => at(each, "name") === name);

/** How a connection that names these objects in its namespace uses it. */
export const connectionUses = (named: readonly NamedByConnection[], { kind, name }: Traced): string[] =>
  named.flatMap(({ ref, use }) => (ref.resource.kind === kind && ref.name === name ? [use] : []));

export const isIngressCertificate = ({ spec }: KubeObject, name: string): boolean =>
  listAt(spec, "tls").some((each) => at(each, "secretName") === name);

/** A Gateway may name Secrets of other namespaces. */
export function isGatewayCertificate({ metadata, spec }: KubeObject, traced: Traced): boolean {
  const references = listAt(spec, "listeners").flatMap((each) => listAt(each, "tls", "certificateRefs"));
  return references.filter(isObject).some((each) => {
    const { group = "", kind = "Secret", name, namespace = metadata.namespace } = each;
    return group === "" && kind === "Secret" && name === traced.name && namespace === traced.namespace;
  });
}
