/** The kinds that every API server serves, and Inlay's own kinds. */
import type { Resource } from "./objects.ts";

function kind(group: string, version: string, kind: string, plural: string, more: Partial<Resource> = {}): Resource {
  return { group, version, kind, plural, namespaced: true, hasStatus: false, ...more };
}

const withStatus = { hasStatus: true };

export const SECRETS = kind("", "v1", "Secret", "secrets");
export const CONFIG_MAPS = kind("", "v1", "ConfigMap", "configmaps");
export const SERVICE_ACCOUNTS = kind("", "v1", "ServiceAccount", "serviceaccounts");
/** Created to get a token of the account. */
export const ACCOUNT_TOKENS = kind("", "v1", "TokenRequest", "serviceaccounts/token");
export const ROLES = kind("rbac.authorization.k8s.io", "v1", "Role", "roles");
export const ROLE_BINDINGS = kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
export const NAMESPACES = kind("", "v1", "Namespace", "namespaces", { namespaced: false, hasStatus: true });
export const PODS = kind("", "v1", "Pod", "pods", withStatus);
/** Created to have a pod deleted. */
export const EVICTIONS = kind("", "v1", "Eviction", "pods/eviction");
export const DISRUPTION_BUDGETS = kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", withStatus);
/** For writing events. */
export const EVENTS = kind("events.k8s.io", "v1", "Event", "events");
/** For reading the same events, as kubectl does: selectable by the object that they are about. */
export const CORE_EVENTS = kind("", "v1", "Event", "events");
export const JOBS = kind("batch", "v1", "Job", "jobs", withStatus);
export const LEASES = kind("coordination.k8s.io", "v1", "Lease", "leases");
export const INGRESSES = kind("networking.k8s.io", "v1", "Ingress", "ingresses", withStatus);
export const CUSTOM_RESOURCE_DEFINITIONS = kind(
  "apiextensions.k8s.io",
  "v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
  { namespaced: false, hasStatus: true },
);
export const DEPLOYMENTS = kind("apps", "v1", "Deployment", "deployments", withStatus);
/** The revisions of the pod templates of Deployments, StatefulSets and DaemonSets. */
export const REPLICA_SETS = kind("apps", "v1", "ReplicaSet", "replicasets", withStatus);
export const CONTROLLER_REVISIONS = kind("apps", "v1", "ControllerRevision", "controllerrevisions");
export const ADMISSION_POLICIES = kind(
  "admissionregistration.k8s.io",
  "v1",
  "ValidatingAdmissionPolicy",
  "validatingadmissionpolicies",
  { namespaced: false, hasStatus: true },
);
export const ADMISSION_POLICY_BINDINGS = kind(
  "admissionregistration.k8s.io",
  "v1",
  "ValidatingAdmissionPolicyBinding",
  "validatingadmissionpolicybindings",
  { namespaced: false },
);
export const SECRET_BINDINGS = kind("inlay.dev", "v1alpha1", "SecretBinding", "secretbindings", withStatus);
export const SECRET_GRANTS = kind("inlay.dev", "v1alpha1", "SecretGrant", "secretgrants");
export const VAULT_CONNECTIONS = kind("inlay.dev", "v1alpha1", "VaultConnection", "vaultconnections", withStatus);
export const BINDING_COMPOSITIONS = kind("inlay.dev", "v1alpha1", "BindingComposition", "bindingcompositions", {
  namespaced: false,
  hasStatus: true,
});
/** Inlay's own kinds. */
export const OWN_RESOURCES: readonly Resource[] = [
  SECRET_BINDINGS,
  SECRET_GRANTS,
  BINDING_COMPOSITIONS,
  VAULT_CONNECTIONS,
];
/** Those that the controller reconciles. */
export const RECONCILED: readonly Resource[] = OWN_RESOURCES.filter(({ hasStatus }) => hasStatus);
