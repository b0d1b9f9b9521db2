/** The kinds that are looked at whatever a binding names, as every API server serves them. */
import type { Resource } from "../model/kube-object.ts";

const kind = (group: string, version: string, kind: string, plural: string): Resource => ({
  group,
  version,
  kind,
  plural,
  namespaced: true,
  hasStatus: false,
});

export const SECRETS = kind("", "v1", "Secret", "secrets");
export const CONFIG_MAPS = kind("", "v1", "ConfigMap", "configmaps");
export const SERVICE_ACCOUNTS = kind("", "v1", "ServiceAccount", "serviceaccounts");
export const PODS = kind("", "v1", "Pod", "pods");
export const EVENTS = kind("", "v1", "Event", "events");
export const NAMESPACES: Resource = { ...kind("", "v1", "Namespace", "namespaces"), namespaced: false };
export const INGRESSES = kind("networking.k8s.io", "v1", "Ingress", "ingresses");
export const BINDINGS = kind("inlay.dev", "v1alpha1", "SecretBinding", "secretbindings");
export const GRANTS = kind("inlay.dev", "v1alpha1", "SecretGrant", "secretgrants");
