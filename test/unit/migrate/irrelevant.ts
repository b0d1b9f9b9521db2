/** The fields that need nothing in Inlay, for each tool. docs/reference/cli.md says why. */

const OF_API_SERVER = ["metadata.uid", "status"];

/** Values and labels of the copied objects, and annotations of other programs. */
const OF_COPIES = ["data", "type", "metadata.annotations.example.com/owner", "metadata.annotations.inlayTestField"];

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
  ],
  reflector: [
    ...OF_API_SERVER,
    ...OF_COPIES,
    "metadata.labels",
    "metadata.annotations.reflector.v1.k8s.emberstack.com/reflected-version",
    "Certificate: *",
  ],
  vso: [
    ...OF_API_SERVER,
    "VaultAuth: spec.kubernetes.tokenExpirationSeconds",
    "VaultAuth: spec.storageEncryption",
    "VaultConnection: spec.skipTLSVerify",
    "VaultDynamicSecret: *",
  ],
};
