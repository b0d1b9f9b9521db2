/** Mistakes in what a binding names: sources, targets, accounts, namespaces, workloads; and what it may not do. */
import { accessKey, bucket, key, type Mistake, rollout, S3, source, target } from "./mistake.ts";

/** The kind of a CRD whose rules refuse some values. The test installs it. */
export const STRICT = {
  group: "strict.example.com",
  kind: "Strict",
  plural: "stricts",
  spec: {
    type: "object",
    "x-kubernetes-validations": [
      { rule: "!has(self.user) || self.user.startsWith('app-')", message: "user begins with app-", fieldPath: ".user" },
    ],
    properties: {
      user: { type: "string", maxLength: 100 },
      port: { type: "string" },
      level: { type: "string", default: "low" },
      fixed: { type: "string", maxLength: 100, "x-kubernetes-validations": [{ rule: "self == oldSelf" }] },
    },
  },
};
const strict = (name: string, ...fields: object[]) => ({
  sources: [bucket],
  targets: [{ apiVersion: "strict.example.com/v1", kind: "Strict", name, fields }],
});

export const OBJECTS: readonly Mistake[] = [
  {
    mistake: "a kind in lower case",
    spec: target({ kind: "harborcluster" }),
    reason: "KindNotFound",
    says: /[Dd]id you mean HarborCluster\?/,
  },
  {
    mistake: "a kind in the plural",
    spec: target({ kind: "HarborClusters" }),
    reason: "KindNotFound",
    says: /[Dd]id you mean HarborCluster\?/,
  },
  {
    mistake: "a version that is not served",
    spec: target({ apiVersion: "goharbor.io/v1" }),
    reason: "KindNotFound",
    says: /goharbor\.io\/v1beta1/,
  },
  {
    mistake: "a kind whose CRD is missing",
    spec: target({ apiVersion: "example.com/v1", kind: "Widget" }),
    reason: "KindNotFound",
    says: /Widget.*example\.com\/v1.*CRD/,
  },
  {
    mistake: "a target with a typo",
    spec: target({ name: "habror" }),
    reason: "TargetNotFound",
    says: /habror.*correct the name/,
  },
  {
    mistake: "a selector that matches nothing",
    spec: target({ name: undefined, selector: { matchLabels: { app: "none" } } }),
    reason: "Synced",
    says: /match|no /,
  },
  {
    mistake: "a Secret with a typo",
    spec: source({ name: "bucket", secret: { name: "buckt" } }),
    reason: "SourceNotFound",
    says: /Secret \S+\/buckt/,
  },
  {
    mistake: "a ConfigMap read as a Secret",
    spec: source({ name: "bucket", secret: { name: "settings" } }),
    reason: "SourceNotFound",
    says: /Secret \S+\/settings/,
  },
  {
    mistake: "a Secret in another namespace without a grant",
    spec: source({ secret: { name: "bucket", namespace: "default" } }),
    reason: "NotGranted",
    says: /SecretGrant.*default/,
  },
  {
    mistake: "a plural name that does not exist, in an object source",
    spec: {
      sources: [{ object: { apiVersion: "v1", resource: "service", name: "web" } }],
      targets: [
        {
          apiVersion: "goharbor.io/v1beta1",
          kind: "HarborCluster",
          name: "harbor-of-service",
          fields: [{ path: `${S3}.regionendpoint`, from: { source: "web", fieldPath: "spec.clusterIP" } }],
        },
      ],
    },
    reason: "KindNotFound",
    says: /services/,
  },
  {
    mistake: "an account with a typo",
    spec: { ...target({}), serviceAccountName: "inlya" },
    reason: "ImpersonationForbidden",
    says: /inlya.*set serviceAccountName to inlay/,
  },
  {
    mistake: "an account that Inlay may not impersonate",
    spec: { ...target({}), serviceAccountName: "robot" },
    reason: "ImpersonationForbidden",
    says: /robot.*kubectl|kubectl.*robot/,
  },
  {
    mistake: "a namespace without an account",
    spec: target({}),
    where: "bare",
    reason: "ServiceAccountNotFound",
    says: /kubectl create serviceaccount inlay -n/,
  },
  {
    mistake: "an account without permissions",
    spec: target({}),
    where: "poor",
    reason: "Forbidden",
    says: /(?=.*secrets)(?=.*harborclusters).*kubectl/s,
  },
  {
    mistake: "a target in a namespace that does not exist",
    spec: target({ namespace: "shopp" }),
    reason: "Forbidden",
    says: /(namespace shopp (does not|may not) exist|kubectl get namespace shopp)/,
  },
  {
    mistake: "a target of a kind that the account may only read",
    spec: {
      sources: [bucket],
      targets: [
        { apiVersion: "v1", kind: "ConfigMap", name: "settings", fields: [{ path: "data.other", from: key("host") }] },
      ],
    },
    reason: "Forbidden",
    says: /configmaps.*kubectl/s,
  },
  {
    mistake: "a kind that grants permissions",
    spec: target({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      name: "web",
      fields: [{ ...accessKey, path: "rules[0].verbs[0]" }],
    }),
    reason: "ForbiddenKind",
    says: /Role/,
  },
  {
    mistake: "a field that another manager owns",
    spec: strict("owned", { path: "spec.user", from: key("host") }),
    reason: "Conflict",
    says: /spec\.user.*kubectl.*onConflict|onConflict.*Force/,
  },
  {
    mistake: "a field that has the default of its CRD",
    spec: strict("refused", { path: "spec.level", from: key("host") }),
    reason: "Conflict",
    says: /spec\.level.*default.*onConflict: Force/,
  },
  {
    mistake: "a field that may not change",
    spec: { ...strict("owned", { path: "spec.fixed", from: key("host") }), defaults: { onConflict: "Force" } },
    reason: "Immutable",
    says: /spec\.fixed/,
  },
  {
    mistake: "a value that a rule of the CRD refuses",
    spec: strict("refused", { path: "spec.user", from: key("host") }, { path: "spec.port", from: key("port") }),
    reason: "Rejected",
    says: /spec\.user.*user begins with app-/,
  },
  {
    mistake: "a rollout target that does not exist",
    spec: rollout({ targets: [{ kind: "Deployment", name: "wbe" }] }),
    condition: "RolledOut",
    reason: "WorkloadNotFound",
    says: /Deployment \S*wbe/,
  },
  {
    mistake: "a rollout target in lower case",
    spec: rollout({ targets: [{ kind: "deployment", apiVersion: "apps/v1", name: "web", template: "spec.template" }] }),
    condition: "RolledOut",
    reason: "KindNotFound",
    says: /[Dd]id you mean Deployment\?/,
  },
  {
    mistake: "a rollout of a source that is not declared",
    spec: rollout({ consumersOf: ["bukcet"] }),
    condition: "RolledOut",
    reason: "InvalidBinding",
    says: /bukcet.*bucket/,
  },
  {
    mistake: "a rollout without the permission to restart",
    spec: rollout({ consumersOf: ["bucket"], kinds: ["StatefulSet"] }),
    condition: "RolledOut",
    reason: "Forbidden",
    says: /statefulsets.*kubectl/s,
  },
  {
    mistake: "a VaultConnection that does not exist",
    spec: source({
      name: "bucket",
      vault: { connection: { name: "vautl" }, data: { mount: "kv", path: "team/s3" } },
    }),
    reason: "ConnectionNotFound",
    says: /vautl/,
  },
];
