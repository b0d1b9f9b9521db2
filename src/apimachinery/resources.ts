/** The kinds that are known whatever a binding names, as every API server serves them. */
import type { Resource } from "./objects.ts";

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
export const NAMESPACES: Resource = {
  ...kind("", "v1", "Namespace", "namespaces"),
  namespaced: false,
  hasStatus: true,
};
export const PODS: Resource = { ...kind("", "v1", "Pod", "pods"), hasStatus: true };
/** What is made to have a pod deleted. */
export const EVICTIONS = kind("", "v1", "Eviction", "pods/eviction");
export const DISRUPTION_BUDGETS: Resource = {
  ...kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
  hasStatus: true,
};
/** As they are written. */
export const EVENTS = kind("events.k8s.io", "v1", "Event", "events");
/** The same events as kubectl reads them, which can be selected by what they are about. */
export const CORE_EVENTS = kind("", "v1", "Event", "events");
export const JOBS: Resource = { ...kind("batch", "v1", "Job", "jobs"), hasStatus: true };
export const LEASES = kind("coordination.k8s.io", "v1", "Lease", "leases");
export const INGRESSES: Resource = { ...kind("networking.k8s.io", "v1", "Ingress", "ingresses"), hasStatus: true };
export const SECRET_BINDINGS: Resource = {
  ...kind("inlay.dev", "v1alpha1", "SecretBinding", "secretbindings"),
  hasStatus: true,
};
export const SECRET_GRANTS = kind("inlay.dev", "v1alpha1", "SecretGrant", "secretgrants");
