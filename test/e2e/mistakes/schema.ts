/** Mistakes that the API server refuses. */
import { accessKey, bucket, field, harbor, key, type Mistake, rollout, S3, source, target } from "./mistake.ts";

export const REFUSED: readonly Mistake[] = [
  {
    mistake: "a misspelled field",
    spec: { sources: [bucket], targets: [harbor({ feilds: [accessKey] })] },
    says: /unknown field "spec\.targets\[0\]\.feilds"/,
  },
  { mistake: "no sources", spec: { targets: [harbor({ fields: [accessKey] })] }, says: /spec\.sources: Required/ },
  { mistake: "an empty list of sources", spec: { sources: [], targets: [] }, says: /spec\.sources.*at least 1/ },
  {
    mistake: "a source that is not in a list",
    spec: { sources: bucket, targets: [harbor({ fields: [accessKey] })] },
    says: /unknown field "spec\.sources\.secret"/,
  },
  {
    mistake: "fields as a map",
    spec: { sources: [bucket], targets: [harbor({ fields: { accesskey: "bucket" } })] },
    says: /unknown field "spec\.targets\[0\]\.fields\.accesskey"/,
  },
  {
    mistake: "a source with two objects",
    spec: source({ secret: { name: "bucket" }, configMap: { name: "bucket" } }),
    says: /spec\.sources\[0\].*exactly one of secret, configMap/,
  },
  {
    mistake: "a source with the name only",
    spec: source({ name: "bucket" }),
    says: /spec\.sources\[0\].*exactly one of/,
  },
  {
    mistake: "a Secret by its name only",
    spec: source({ secret: "bucket" }),
    says: /spec\.sources\[0\]\.secret.*object/,
  },
  {
    mistake: "two sources of one name",
    spec: { ...target({}), sources: [bucket, { configMap: { name: "bucket" } }] },
    says: /two sources have the same name/,
  },
  {
    mistake: "from with a source that is not declared",
    spec: field({ path: `${S3}.accesskey`, from: { source: "bukcet", key: "host" } }),
    says: /bukcet|from\.source is not in spec\.sources/,
  },
  {
    mistake: "from and template",
    spec: field({ ...accessKey, template: "x" }),
    says: /spec\.targets\[0\]\.fields\[0\].*exactly one of from and template/,
  },
  {
    mistake: "from as a text",
    spec: field({ path: `${S3}.accesskey`, from: "bucket.host" }),
    says: /fields\[0\]\.from.*object/,
  },
  {
    mistake: "an unknown type",
    spec: field({ path: `${S3}.chunksize`, from: key("port"), as: "int" }),
    says: /as: Unsupported value: "int".*"integer"/,
  },
  {
    mistake: "a name and a selector",
    spec: target({ selector: { names: ["*"] } }),
    says: /exactly one of name and selector/,
  },
  { mistake: "a target without a name", spec: target({ name: undefined }), says: /exactly one of name and selector/ },
  {
    mistake: "an operator in lower case",
    spec: target({
      name: undefined,
      selector: { matchExpressions: [{ key: "app", operator: "in", values: ["x"] }] },
    }),
    says: /operator: Unsupported value: "in".*"In"/,
  },
  {
    mistake: "In without values",
    spec: target({ name: undefined, selector: { matchExpressions: [{ key: "app", operator: "In" }] } }),
    says: /In and NotIn need values/,
  },
  { mistake: "an apiVersion without a version", spec: target({ apiVersion: "goharbor.io" }), says: /apiVersion/ },
  {
    mistake: "a duration in words",
    spec: { ...rollout({ consumersOf: ["bucket"], debounce: "5 seconds" }) },
    says: /rollout\.debounce.*(duration|10s|5s|30s)/,
  },
  {
    mistake: "a rollout target in lower case without apiVersion",
    spec: rollout({ targets: [{ kind: "deployment", name: "web" }] }),
    says: /rollout\.targets\[0\].*Deployment/,
  },
  {
    mistake: "an unknown kind of consumers",
    spec: rollout({ consumersOf: ["bucket"], kinds: ["deployments"] }),
    says: /kinds\[0\]: Unsupported value.*"Deployment"/,
  },
  {
    mistake: "neither targets nor a rollout",
    spec: { sources: [bucket] },
    says: /targets, rollout and protect are all missing/,
  },
  {
    mistake: "a policy that does not exist",
    spec: { ...target({}), defaults: { onRelease: "Delete" } },
    says: /onRelease: Unsupported value: "Delete".*"Remove"/,
  },
];

/** An object of another kind that the API server refuses. */
export interface RefusedObject {
  mistake: string;
  object: { apiVersion: string; kind: string; spec: object };
  says: RegExp;
}

const inlay = (kind: string, spec: object) => ({ apiVersion: "inlay.dev/v1alpha1", kind, spec });
export const REFUSED_OBJECTS: readonly RefusedObject[] = [
  {
    mistake: "a SecretGrant without to",
    object: inlay("SecretGrant", { from: [{ namespace: "shop" }] }),
    says: /spec\.to: Required/,
  },
  {
    mistake: "a SecretGrant of a kind in the plural",
    object: inlay("SecretGrant", { from: [{ namespace: "shop" }], to: [{ kind: "secrets", name: "bucket" }] }),
    says: /kind: Unsupported value: "secrets".*"Secret"/,
  },
  {
    mistake: "a VaultConnection without paths",
    object: inlay("VaultConnection", {
      address: "https://vault.example.com:8200",
      auth: { kubernetes: { role: "web" } },
    }),
    says: /auth and paths must be set together/,
  },
  {
    mistake: "a VaultConnection with a host only",
    object: inlay("VaultConnection", { address: "vault.example.com:8200" }),
    says: /spec\.address.*https?:/,
  },
  {
    mistake: "a BindingComposition without bindings",
    object: inlay("BindingComposition", { for: { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster" } }),
    says: /spec\.bindings: Required/,
  },
];
