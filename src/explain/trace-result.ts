/**
 * What `inlay trace` reports about a Secret or ConfigMap: the shape of its JSON, which other programs read too; and what single objects
 * that were listed show of it. Pure.
 */
import type { SecretBinding, Target, TargetStatus } from "../api/binding.ts";
import type { SecretGrant } from "../api/secret-grant.ts";
import type { VaultConnection } from "../api/vault-connection.ts";
import { isSameKind, type KubeObject } from "../apimachinery/objects.ts";
import { parseSources } from "../sources/registry.ts";
import { type ReadTemplate, useInWords, usesOf } from "../sources/uses.ts";
import type { ReadState } from "./explanation.ts";
import { inWords, selectorInWords } from "./rollout.ts";

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
  /** SecretGrants that let bindings read it. */
  grants: { name: string; from: string[] }[];
  /** Those whose pods refer to it; then those whose pods refer to copies that bindings with consumersOfTargets write from it. */
  workloads: WorkloadTrace[];
  /** ServiceAccounts of its namespace whose pods pull images with it. */
  serviceAccounts: string[];
  /** Ingresses and Gateways whose certificate it is. */
  certificates: { kind: string; namespace: string; name: string }[];
  /** VaultConnections of its namespace that log in with it, or trust a server by it, such as `CA` or `SecretID`. */
  connections: { name: string; uses: string[] }[];
  /** What could not be looked at, so that something may be missing above. */
  unreadable: string[];
}

export interface BindingTrace {
  /** Namespace and name. */
  binding: string;
  source: string;
  account: string;
  /** What its condition Ready says, if it was looked at. */
  reason?: string;
  suspended: boolean;
  /** The fields that take something of it. */
  targets: { apiVersion: string; kind: string; object: string; fields: { path: string; keys: string[] }[] }[];
  /** In words: which workloads it restarts. */
  restarts: string[];
}

export interface WorkloadTrace {
  apiVersion: string;
  kind: string;
  /** Left out where it is that of the traced object. */
  namespace?: string;
  name: string;
  /** What its pods refer to in place of the traced object, in the workload's namespace: a copy of values of it. */
  copy?: { kind: string; name: string };
  /** Where its pods name it: env, envFrom, volume, projected, imagePullSecret, csi. */
  references: string[];
  /** Which keys of the traced object they take; all of them where this is left out. */
  keys?: string[];
  /** To whom a pod belongs that is of no workload that is known. */
  owner?: string;
  /** The bindings that restart it when a value changes. None: nothing of Inlay does. */
  restarts: { binding: string; suspended: boolean }[];
}

/** By what names a binding calls the object among its sources. */
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
      const fields = target.fields.flatMap((field) => {
        const uses = usesOf(sources, field, readTemplate).filter((use) => use.source === source);
        const keys = uses.map(({ of }) => useInWords(of));
        return keys.length === 0 ? [] : [{ path: field.path, keys }];
      });
      const where = target.namespaceSelector ? "" : `${target.namespace ?? metadata.namespace}/`;
      const { apiVersion, kind, name } = target;
      return fields.length === 0 ? [] : [{ apiVersion, kind, object: `${where}${name ?? "(selected)"}`, fields }];
    }),
    restarts: spec.rollout ? inWords(spec.rollout) : [],
  }));
}

/** What a binding writes into the object, or wrote by its record. Undefined for nothing. */
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
    ...named.flatMap(({ fields }) => fields.map(({ path }) => path)),
    ...recorded.flatMap(({ paths = [] }) => paths),
  ];
  return { binding: `${metadata.namespace}/${metadata.name}`, fields: [...new Set(paths)].sort() };
}

/** Whom a grant lets read, in words. */
export function granteesOf({ from }: SecretGrant["spec"]): string[] {
  return from.map(({ namespace, namespaceUID, namespaceSelector, composition, serviceAccountName }) => {
    const account = serviceAccountName === undefined ? "any account" : `account ${serviceAccountName}`;
    if (composition !== undefined) return `${account} in bindings of BindingComposition ${composition}`;
    const uid = namespaceUID === undefined ? "" : ` with the uid ${namespaceUID}`;
    if (namespaceSelector === undefined) return `${account} of namespace ${namespace}${uid}`;
    return `${account} of namespaces that match ${selectorInWords(namespaceSelector)}`;
  });
}

export function pullsWith(account: KubeObject, name: string): boolean {
  const references = account["imagePullSecrets"];
  return Array.isArray(references) && references.some((each: { name?: unknown }) => each.name === name);
}

/** What a VaultConnection of its namespace takes of it. */
export function connectionUses({ tls, auth }: VaultConnection["spec"], { kind, name }: Traced): string[] {
  const places = [
    ["CA", tls?.ca],
    ["SecretID", auth?.appRole?.secretID],
    ["token", auth?.token],
  ] as const;
  return places.flatMap(([use, from]) => {
    const named: Partial<Record<"secret" | "configMap", { name: string }>> = from ?? {};
    return (kind === "Secret" ? named.secret : named.configMap)?.name === name ? [use] : [];
  });
}

interface Tls {
  secretName?: unknown;
}

export function isIngressCertificate({ spec }: KubeObject, name: string): boolean {
  return ((spec as { tls?: Tls[] } | undefined)?.tls ?? []).some(({ secretName }) => secretName === name);
}

interface Listener {
  tls?: { certificateRefs?: { group?: string; kind?: string; name?: string; namespace?: string }[] };
}

/** A Gateway may name Secrets of other namespaces. */
export function isGatewayCertificate({ metadata, spec }: KubeObject, { namespace, name }: Traced): boolean {
  return ((spec as { listeners?: Listener[] } | undefined)?.listeners ?? []).some(({ tls }) =>
    (tls?.certificateRefs ?? []).some(
      (each) =>
        (each.group ?? "") === "" &&
        (each.kind ?? "Secret") === "Secret" &&
        each.name === name &&
        (each.namespace ?? metadata.namespace) === namespace,
    ),
  );
}
