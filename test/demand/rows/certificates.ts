/** The rows of tools that issue or check certificates. */
import { secretText } from "../../controller/leak-detector.ts";
import { base64, pem, type Row } from "../row.ts";

const issuer = {
  apiVersion: "cert-manager.io/v1",
  kind: "ClusterIssuer",
  plural: "clusterissuers",
  scope: "Cluster",
} as const;
const server = "https://acme.example.com/directory";

const accountRow: Row = {
  number: 4,
  title: "a ClusterIssuer is created with the id of the account's key at its CA",
  values: () => ({ eab: { kid: secretText("kid") } }),
  targets: [
    {
      ...issuer,
      name: "with-account",
      entry: {
        fields: [{ path: "spec.acme.externalAccountBinding.keyID", from: { source: "eab", key: "kid" } }],
        create: {
          manifest: {
            spec: {
              acme: {
                server,
                privateKeySecretRef: { name: "acme-account" },
                externalAccountBinding: { keySecretRef: { name: "eab", key: "hmac" }, keyAlgorithm: "HS256" },
              },
            },
          },
        },
      },
      arrives: ({ eab }) => [[["spec", "acme", "externalAccountBinding", "keyID"], eab.kid]],
    },
  ],
};

const appRoleRow: Row = {
  number: 5,
  title: "a ClusterIssuer is created with the role id for its login to Vault",
  values: () => ({ approle: { "role-id": secretText("role") } }),
  targets: [
    {
      ...issuer,
      name: "with-approle",
      entry: {
        fields: [{ path: "spec.vault.auth.appRole.roleId", from: { source: "approle", key: "role-id" } }],
        create: {
          manifest: {
            spec: {
              vault: {
                server: "https://vault.example.com",
                path: "pki/sign/example-com",
                auth: { appRole: { path: "approle", secretRef: { name: "approle", key: "secret-id" } } },
              },
            },
          },
        },
      },
      arrives: ({ approle }) => [[["spec", "vault", "auth", "appRole", "roleId"], approle["role-id"]]],
    },
  ],
};

const acmeCaRow: Row = {
  number: 6,
  title: "a ClusterIssuer trusts the CA of a ConfigMap, whose text is encoded as base64",
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

const route53 = { region: "eu-central-1", role: "arn:aws:iam::000000000000:role/dns" };
const zoneRow: Row = {
  number: 7,
  title: "a solver in a ClusterIssuer's list gets its hosted zone, and the others don't change",
  configMaps: ["zone"],
  values: () => ({ zone: { id: secretText("zone") } }),
  targets: [
    {
      ...issuer,
      name: "with-zone",
      object: {
        spec: {
          acme: {
            server,
            privateKeySecretRef: { name: "acme-account" },
            solvers: [
              { selector: { dnsZones: ["example.com"] }, dns01: { route53 } },
              { http01: { ingress: { ingressClassName: "nginx" } } },
            ],
          },
        },
      },
      entry: {
        fields: [{ path: "spec.acme.solvers[0].dns01.route53.hostedZoneID", from: { source: "zone", key: "id" } }],
      },
      arrives: ({ zone }) => [[["spec", "acme", "solvers", 0, "dns01", "route53", "hostedZoneID"], zone.id]],
      operation: "Update",
    },
  ],
};

const extensionRow: Row = {
  number: 8,
  title: "an ExtensionConfig trusts the CA of a Secret, base64 in both",
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
  title: "a Route trusts the CA of its service, as text",
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

export const certificates: Row[] = [accountRow, appRoleRow, acmeCaRow, zoneRow, extensionRow, routeRow];
