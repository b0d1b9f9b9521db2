/** The fields that need nothing in Inlay, for each tool. docs/reference/cli.md says why. */

const OF_API_SERVER = ["metadata.uid", "status"];

/** What bindings read from the copied objects when they run, and annotations of other programs. */
const OF_COPIES = [
  "data",
  "binaryData",
  "type",
  "metadata.labels",
  "metadata.annotations.example.com/owner",
  "metadata.annotations.inlayTestField",
];

/** What other programs read in an object, besides these fields. */
const ofObjects = (kind: string, fields: string): string[] =>
  ["inlayTestField", "metadata.inlayTestField", ...OF_COPIES, ...fields.split(" ")].map((path) => `${kind}: ${path}`);

/** What cert-manager reads. Keys without a dot are the name of another program's annotation, or of a label that the API server adds. */
const OF_CERTIFICATES = [
  ..."metadata.labels spec.secretTemplate.labels spec.issuerRef spec.dnsNames spec.inlayTestField"
    .split(" ")
    .map((path) => `Certificate: ${path}`),
  "Certificate: spec.secretTemplate.annotations.example.com/owner",
  "Certificate: spec.secretTemplate.annotations.inlayTestField",
];

export const IRRELEVANT: Readonly<Record<string, readonly string[]>> = {
  kyverno: [
    ...OF_API_SERVER,
    "metadata.annotations",
    "metadata.labels",
    "DeletingPolicy: *",
    // The objects that a policy changes need no operation.
    "spec.targetMatchConstraints.resourceRules.operations",
    "spec.matchConditions.name",
    "spec.targetMatchConditions.name",
    "spec.validations.message",
    "spec.background",
    "spec.mutateExistingOnPolicyUpdate",
    "spec.rules.name",
    "spec.rules.validate.message",
    // A rule that is reported as a whole.
    "spec.rules.3",
    "spec.rules.generate.apiVersion",
  ],
  "patch-operator": [
    ...OF_API_SERVER,
    // An object with an annotation.
    ...["ConfigMap", "ClusterIssuer"].flatMap((kind) => ofObjects(kind, "data spec")),
    // These are reported as a whole.
    "spec.patches.annotations.sourceObjectRefs.2",
    "spec.patches.replicas.targetObjectRef.annotationSelector",
  ],
  "external-secrets": [
    ...OF_API_SERVER,
    "spec.provider.vault.readYourWrites",
    "spec.provider.vault.forwardInconsistent",
    "spec.provider.kubernetes.auth",
    "spec.retrySettings",
    "spec.refreshTime",
    "SecretStore: spec.refreshInterval",
    "PushSecret: spec.refreshInterval",
    // What is reported as a whole.
    "SecretStore: spec.provider.vault.headers",
    "spec.provider.aws",
    "spec.syncWindows",
    "ExternalSecret: spec.data.1",
    "spec.dataFrom.find",
  ],
  replicator: [
    ...OF_API_SERVER,
    ...OF_COPIES,
    "metadata.annotations.replicator.v1.mittwald.de/replicated-at",
    "Role: *",
    "ConfigMap: metadata.labels",
    ...OF_CERTIFICATES,
  ],
  reloader: [
    ...["Deployment", "Job", "Secret", "DeploymentConfig"].flatMap((kind) =>
      ofObjects(
        kind,
        "apiVersion data spec.inlayTestField spec.selector spec.template.spec spec.template.inlayTestField",
      ),
    ),
    "spec.template.metadata.labels",
    "spec.template.metadata.inlayTestField",
    "spec.template.metadata.annotations.inlayTestField",
    "metadata.annotations.deployment.reloader.stakater.com/paused-at",
    // It is reported as a whole.
    "DeploymentConfig: *",
  ],
  reflector: [
    ...OF_API_SERVER,
    ...OF_COPIES,
    "metadata.labels",
    "metadata.annotations.reflector.v1.k8s.emberstack.com/reflected-version",
    ...OF_CERTIFICATES,
    "Certificate: spec.secretTemplate.labels",
  ],
  vso: [
    ...OF_API_SERVER,
    "VaultAuth: spec.kubernetes.tokenExpirationSeconds",
    "VaultAuth: spec.storageEncryption",
    "VaultConnection: spec.skipTLSVerify",
    "VaultDynamicSecret: *",
  ],
};
