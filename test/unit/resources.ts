/** Kinds as discovery lists them. */
import type { Resource } from "../../src/apimachinery/objects.ts";

const core = { group: "", version: "v1", namespaced: true, hasStatus: false };

export const SECRETS: Resource = { ...core, kind: "Secret", plural: "secrets" };
export const CONFIGMAPS: Resource = { ...core, kind: "ConfigMap", plural: "configmaps" };
export const ACCOUNTS: Resource = { ...core, kind: "ServiceAccount", plural: "serviceaccounts" };
export const NODES: Resource = { ...core, kind: "Node", plural: "nodes", namespaced: false };
export const WIDGETS: Resource = { ...core, group: "example.com", kind: "Widget", plural: "widgets" };
export const ROLES: Resource = {
  ...core,
  group: "rbac.authorization.k8s.io",
  kind: "Role",
  plural: "roles",
};
export const ISSUERS: Resource = {
  ...core,
  group: "cert-manager.io",
  kind: "ClusterIssuer",
  plural: "clusterissuers",
  namespaced: false,
};
export const HARBORS: Resource = {
  group: "goharbor.io",
  version: "v1beta1",
  kind: "HarborCluster",
  plural: "harborclusters",
  namespaced: true,
  hasStatus: true,
};

export const DEPLOYMENTS: Resource = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  namespaced: true,
  hasStatus: true,
};

export const HARBOR = { resource: HARBORS, namespace: "registry", name: "harbor" };
