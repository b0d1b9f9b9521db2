/** Rows of certificates, and of those who give them out. */
import { base64, pem, type Row } from "../row.ts";

const issuer = {
  apiVersion: "cert-manager.io/v1",
  kind: "ClusterIssuer",
  plural: "clusterissuers",
  scope: "Cluster",
} as const;
const server = "https://acme.example.com/directory";

const acmeCaRow: Row = {
  number: 6,
  title: "a ClusterIssuer trusts the CA of a ConfigMap, text there and base64 here",
  configMaps: ["ca"],
  values: () => ({ ca: { "ca.crt": pem() } }),
  targets: [
    {
      ...issuer,
      name: "with-ca",
      object: { spec: { acme: { server, privateKeySecretRef: { name: "acme-account" } } } },
      entry: { fields: [{ path: "spec.acme.caBundle", from: { source: "ca", key: "ca.crt" } }] },
      arrives: ({ ca }) => [[["spec", "acme", "caBundle"], base64(ca["ca.crt"])]],
      operation: "Apply",
    },
  ],
};

const extensionRow: Row = {
  number: 8,
  title: "an ExtensionConfig trusts the CA of a Secret, base64 there and base64 here",
  values: () => ({ serving: { "ca.crt": pem() } }),
  targets: [
    {
      apiVersion: "runtime.cluster.x-k8s.io/v1beta2",
      kind: "ExtensionConfig",
      plural: "extensionconfigs",
      scope: "Cluster",
      name: "hooks",
      object: { spec: { clientConfig: { service: { name: "hooks", namespace: "hooks", port: 443 } } } },
      entry: { fields: [{ path: "spec.clientConfig.caBundle", from: { source: "serving", key: "ca.crt" } }] },
      arrives: ({ serving }) => [[["spec", "clientConfig", "caBundle"], base64(serving["ca.crt"])]],
      operation: "Apply",
    },
  ],
};

const routeRow: Row = {
  number: 9,
  title: "a Route trusts the CA of the service behind it, as text",
  configMaps: ["service-ca"],
  values: () => ({ "service-ca": { "service-ca.crt": pem() } }),
  targets: [
    {
      apiVersion: "route.openshift.io/v1",
      kind: "Route",
      plural: "routes",
      name: "shop",
      object: {
        spec: { host: "shop.example.com", to: { kind: "Service", name: "shop" }, tls: { termination: "reencrypt" } },
      },
      entry: {
        fields: [{ path: "spec.tls.destinationCACertificate", from: { source: "service-ca", key: "service-ca.crt" } }],
      },
      arrives: (values) => [[["spec", "tls", "destinationCACertificate"], values["service-ca"]["service-ca.crt"]]],
      operation: "Apply",
    },
  ],
};

export const certificates: Row[] = [acmeCaRow, extensionRow, routeRow];
