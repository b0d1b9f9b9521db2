/** Objects that break each rule of the CRDs, and objects that break none. The message is that of the rule. */
import type { AnyObject } from "../controller/api.ts";

const VERSION = "inlay.dev/v1alpha1";
const field = { path: "spec.a", from: { source: "bucket", key: "a" } };
const target = { apiVersion: "example.com/v1", kind: "Shop", name: "shop", fields: [field] };
const workload = { kind: "Deployment", name: "web" };
const bucket = { secret: { name: "bucket" } };
const object = { apiVersion: "v1", resource: "services", name: "minio" };
const place = { mount: "kv", path: "team/s3" };

const binding = (spec: object = {}): AnyObject => ({
  apiVersion: VERSION,
  kind: "SecretBinding",
  metadata: { name: "b" },
  spec: { sources: [bucket], targets: [target], ...spec },
});
const withSource = (source: object) => binding({ sources: [bucket, source] });
const withVault = (vault: object) => withSource({ name: "v", vault: { connection: { name: "vault" }, ...vault } });
const withData = (data: object) => withVault({ data: { ...place, ...data } });
const withTarget = (changes: object) => binding({ targets: [{ ...target, ...changes }] });
const without = ({ name: _, ...rest }: typeof target, changes: object) =>
  binding({ targets: [{ ...rest, ...changes }] });
const withField = (changes: object) => withTarget({ fields: [{ path: "spec.a", ...changes }] });
const withFrom = (from: object) => withField({ from: { source: "bucket", ...from } });
const withRollout = (rollout: object, spec: object = {}) => binding({ rollout, ...spec });
const grant = (from: object, to: object = { kind: "Secret", name: "a" }): AnyObject => ({
  apiVersion: VERSION,
  kind: "SecretGrant",
  metadata: { name: "g" },
  spec: { from: [from], to: [to] },
});
const kubernetes = { role: "inlay" };
const connection = (changes: object = {}): AnyObject => ({
  apiVersion: VERSION,
  kind: "VaultConnection",
  metadata: { name: "c" },
  spec: { address: "https://vault.vault.svc:8200", auth: { kubernetes }, paths: ["kv/{namespace}/*"], ...changes },
});
const composition = (name: string): AnyObject => ({
  apiVersion: VERSION,
  kind: "BindingComposition",
  metadata: { name },
  spec: {
    for: { apiVersion: "example.com/v1", kind: "Shop" },
    bindings: [{ name: "a", base: { spec: { sources: [bucket], targets: [target] } } }],
  },
});

export const VALID: readonly AnyObject[] = [
  binding(),
  withSource({ name: "host", object }),
  {
    ...withSource({ configMap: { name: "c" }, protect: {} }),
    metadata: { name: "b", labels: { "inlay.dev/protects": "true" } },
  },
  {
    ...withSource({ secret: { name: "a" }, protect: { writerVerb: "change-a", liftedBy: "Writers", message: "Ask." } }),
    metadata: { name: "b", labels: { "inlay.dev/protects": "true" } },
  },
  withTarget({
    ...{ apiVersion: "v1", kind: "Secret", create: { manifest: {}, exact: true, copy: { labels: ["*"] } } },
    fields: [{ path: "data", from: { source: "bucket" } }],
  }),
  withTarget({ fields: [{ path: "data", from: { sources: ["bucket"], onCollision: "LaterWins" } }] }),
  withData({ version: 2 }),
  withVault({ health: { address: "https://vault-0.vault:8200" }, refresh: "1m30s" }),
  withTarget({ selector: undefined, namespaceSelector: { names: ["team-*"] } }),
  binding({ targets: [target, { ...target, apiVersion: "example.com/v2", kind: "Cafe" }] }),
  withTarget({ namespace: "namespace", create: { manifest: { metadata: { labels: { namespace: "a" } } } } }),
  without(target, {
    selector: {
      matchLabels: { namespace: "in", "a.b/c": "d" },
      matchExpressions: [{ key: "a", operator: "In", values: ["b"] }],
    },
  }),
  withFrom({ key: "a", pointer: "/a/~1b" }),
  withFrom({ include: ["a"], exclude: ["b"] }),
  withRollout({ targets: [workload], debounce: "5s", maxDebounce: "1m" }),
  withRollout({ steps: [{ name: "a", consumersOf: ["bucket"] }] }),
  withRollout({ targets: [workload], onFirstSync: "IfDifferent" }, { targets: [{ ...target, when: "AfterRollout" }] }),
  grant({ namespace: "team-a", namespaceUID: "0a-1" }),
  grant({ namespaceSelector: { names: ["*"] } }, { kind: "Secret", selector: { names: ["*"] } }),
  connection(),
  connection({ auth: { token: { secret: { name: "t", key: "token" } } }, timeout: "500ms", namespace: "team/app/" }),
  connection({ tls: { ca: { configMap: { name: "ca", key: "ca.crt" } }, serverName: "vault.example.com" } }),
  composition("a".repeat(63)),
];

const broken = (message: string, object: AnyObject) => ({ message, object });

export const BROKEN: readonly { message: string; object: AnyObject }[] = [
  broken(
    "from.source is not in spec.sources; write the name of a source there, or the name of its object if the source has no name",
    withField({ from: { source: "buket", key: "a" } }),
  ),
  broken(
    "from has the wrong fields for its source; for a source with object, set fieldPath; for any other source, set key, or neither to copy all data",
    withFrom({ fieldPath: "spec.a" }),
  ),
  broken("targets, rollout and protect are all missing; add at least one of them", binding({ targets: [] })),
  broken(
    "when is AfterRollout, but the binding has no rollout; add spec.rollout, or remove when",
    withTarget({ when: "AfterRollout" }),
  ),
  broken(
    "onFirstSync is IfDifferent, but no target has when: AfterRollout; add such a target, or set onFirstSync to None or Rollout",
    withRollout({ targets: [workload], onFirstSync: "IfDifferent" }),
  ),
  broken(
    "consumersOfTargets needs a Secret or ConfigMap in spec.targets without when: AfterRollout; add such a target, or remove consumersOfTargets",
    withRollout({ consumersOfTargets: true }),
  ),
  broken(
    "this is not the name of an object; use lower-case letters, digits, - and dots, with a letter or digit at both ends, such as my-app.v2",
    binding({ serviceAccountName: "No" }),
  ),
  broken(
    "this is not the key of a label or annotation; write, for example, app.kubernetes.io/name",
    binding({ requireSame: "a/b/c" }),
  ),
  broken(
    "two sources have the same name, which without name is that of the object; set name in one of them to another value",
    withSource(bucket),
  ),
  broken(
    "more than 8 sources have protect; move the others to a second binding",
    binding({
      sources: [bucket, ..."abcdefghi"].map((name) =>
        typeof name === "string" ? { secret: { name }, protect: {} } : name,
      ),
    }),
  ),
  broken(
    "a source needs exactly one of secret, configMap, object, vault and providerClass",
    withSource({ name: "none" }),
  ),
  broken(
    "a source with vault needs a name; set name, which fields and templates refer to",
    withSource({ vault: { connection: { name: "v" }, data: place } }),
  ),
  broken(
    "protect needs a Secret or ConfigMap in the namespace of the binding; remove namespace, or protect the object by a binding in its namespace",
    withSource({ secret: { name: "a", namespace: "other" }, protect: {} }),
  ),
  broken(
    "protect and granted exclude each other; remove granted, or protect the object by another binding",
    withSource({ secret: { name: "a", granted: true }, protect: {} }),
  ),
  broken(
    "this is not the name of a source; use letters, digits and -, beginning with a letter, such as bucket",
    withSource({ name: "1a", secret: { name: "a" } }),
  ),
  broken(
    "namespace is set for a User or Group; remove it, because only a ServiceAccount or a SecretBinding has a namespace",
    withSource({ secret: { name: "a" }, protect: { writers: [{ kind: "User", name: "u", namespace: "n" }] } }),
  ),
  broken(
    "more than 4 sources have protect.writerVerb; move the others to a second binding",
    binding({
      sources: [bucket, ..."abcde"].map((name) =>
        typeof name === "string" ? { secret: { name }, protect: { writerVerb: "change-shared" } } : name,
      ),
    }),
  ),
  broken(
    "the message has a line break or another control character; write one line",
    withSource({ secret: { name: "a" }, protect: { message: "two\nlines" } }),
  ),
  broken(
    "this is not a verb; use lower-case letters, digits and -, such as change-shared-secret",
    withSource({ secret: { name: "a" }, protect: { writerVerb: "Change" } }),
  ),
  broken(
    "roles such as edit give this verb of Kubernetes, so it would protect nothing; choose a verb of your own, such as change-shared-secret",
    withSource({ secret: { name: "a" }, protect: { writerVerb: "update" } }),
  ),
  broken(
    "exact and copy are only for a Secret or ConfigMap of apiVersion v1; remove them from create",
    withTarget({ create: { manifest: {}, exact: true } }),
  ),
  broken(
    "copy needs a field that copies all data of one source; add {path: data, from: {source: …}} with the name of a source, or remove copy",
    withTarget({ apiVersion: "v1", kind: "Secret", create: { manifest: {}, copy: { labels: ["*"] } } }),
  ),
  broken("from needs exactly one of source and sources", withFrom({ sources: ["bucket"] })),
  broken(
    "sources copies all data of several sources, so it can't be used with key or fieldPath; remove these, or name one source in source",
    withField({ from: { sources: ["bucket"], key: "a" } }),
  ),
  broken("onCollision has no effect without sources; remove it", withFrom({ key: "a", onCollision: "Fail" })),
  broken(
    "this is not a DNS label; use lower-case letters, digits and -, with a letter or digit at both ends, such as team-a",
    withTarget({ namespace: "Team" }),
  ),
  broken("vault needs exactly one of data, metadata and health", withVault({ data: place, health: {} })),
  broken(
    "refresh is not a duration from 1s to 24h; write, for example, 30s or 5m",
    withVault({ data: place, refresh: "500ms" }),
  ),
  broken("version needs kv: 2, because KV version 1 has no versions; remove version", withData({ kv: 1, version: 2 })),
  broken(
    "this is not a path in Vault; write it without / at both ends and without the characters *, ?, { and }, such as team/s3",
    withData({ path: "/a" }),
  ),
  broken(
    "a mount may not contain ., .. or + between slashes; write the exact mount path, such as kv",
    withData({ mount: "a/../b" }),
  ),
  broken(
    "a path may not contain ., .. or + between slashes; write one exact path, such as team/s3",
    withData({ path: "a/./b" }),
  ),
  broken(
    "this is not the URL of a server; begin with https:// or http://, and omit path, user and query, as in https://vault.vault.svc:8200",
    withVault({ health: { address: "vault:8200" } }),
  ),
  broken(
    "object may not be a Secret or ConfigMap; use the field secret or configMap of the source",
    withSource({ object: { ...object, resource: "secrets" } }),
  ),
  broken(
    "this is not a group and version; write both in lower case, such as apps/v1, or v1 for the core group",
    withTarget({ apiVersion: "Apps/v1" }),
  ),
  broken(
    "this is not a resource; write the plural name in lower case, as kubectl api-resources lists it, such as services",
    withSource({ object: { ...object, resource: "Services" } }),
  ),
  broken(
    "this is not the name of an object; remove / and %, and write more than dots",
    withSource({ name: "o", object: { ...object, name: "a/b" } }),
  ),
  broken(
    "two targets name the same object; move all their fields to one target",
    binding({ targets: [target, { ...target, apiVersion: "example.com/v2" }] }),
  ),
  broken(
    "a target needs exactly one of name and selector; to select by name, use selector.names",
    withTarget({ selector: { names: ["a"] } }),
  ),
  broken(
    "a target has both namespace and namespaceSelector; remove one; to select by name, use namespaceSelector.names",
    withTarget({ namespace: "a", namespaceSelector: { names: ["a"] } }),
  ),
  broken("fields is empty; add a field, or set create", withTarget({ fields: [] })),
  broken(
    "create needs name; replace selector by name; namespaceSelector chooses the namespaces to create the object in",
    without(target, { selector: { names: ["a"] }, create: { manifest: {} } }),
  ),
  broken("this is not a kind; write it as in a manifest, such as HarborCluster", withTarget({ kind: "-Shop" })),
  broken(
    "a pattern of names may not be empty or contain / or %; write, for example, web-*",
    without(target, { selector: { names: ["a/b"] } }),
  ),
  broken(
    "a key of matchLabels is not a valid label key; write, for example, app.kubernetes.io/name",
    without(target, { selector: { matchLabels: { "a b": "c" } } }),
  ),
  broken(
    "this is not a label value; use letters, digits, -, _ and dots, with a letter or digit at both ends",
    without(target, { selector: { matchLabels: { a: "b c" } } }),
  ),
  broken(
    "In and NotIn need values, and Exists and DoesNotExist must not have values; correct values",
    without(target, { selector: { matchExpressions: [{ key: "a", operator: "In" }] } }),
  ),
  broken(
    "a manifest may not have apiVersion, kind or status; remove them; the target has apiVersion and kind",
    withTarget({ create: { manifest: { kind: "Shop" } } }),
  ),
  broken(
    "metadata of a manifest may not have name or namespace; set them in the target",
    withTarget({ create: { manifest: { metadata: { namespace: "a" } } } }),
  ),
  broken(
    "a field needs exactly one of from and template",
    withField({ from: { source: "bucket", key: "a" }, template: "x" }),
  ),
  broken(
    "from may not have both key and fieldPath; use fieldPath for a source with object, and key for any other source",
    withFrom({ key: "a", fieldPath: "spec.a" }),
  ),
  broken("pointer needs key; set key to the key that holds the JSON or YAML", withFrom({ pointer: "/a" })),
  broken(
    "include and exclude select among all keys, so they can't be used with key or fieldPath; remove either these two or include and exclude",
    withFrom({ key: "a", include: ["b"] }),
  ),
  broken(
    "this is not a JSON pointer; begin with /, as in /spec/endpoint, and write ~1 for / and ~0 for ~ in a key",
    withFrom({ key: "a", pointer: "a" }),
  ),
  broken(
    "steps can't be combined with consumersOf, consumersOfTargets, ownedByTargets and targets beside it; move these fields into a step",
    withRollout({ targets: [workload], steps: [{ name: "a", consumersOf: ["bucket"] }] }),
  ),
  broken(
    "rollout selects no workloads; set consumersOf, consumersOfTargets, ownedByTargets, targets or steps",
    withRollout({ onFirstSync: "None" }),
  ),
  broken(
    "maxDebounce needs debounce; set debounce, or remove maxDebounce",
    withRollout({ targets: [workload], maxDebounce: "1m" }),
  ),
  broken(
    "a workload needs exactly one of name and selector; to select by name, use selector.names",
    withRollout({ targets: [{ kind: "Deployment" }] }),
  ),
  broken(
    "kind is not exactly Deployment, StatefulSet, DaemonSet, CronJob, Job or Rollout; correct it. Any other kind needs template or restartPath: set template to the path of its pod template, such as spec.template, or, if it has none, restartPath to the field that restarts it",
    withRollout({ targets: [{ ...workload, kind: "Shop" }] }),
  ),
  broken(
    "a workload may not have both template and restartPath; remove one of them",
    withRollout({ targets: [{ ...workload, template: "spec.template", restartPath: "spec.a" }] }),
  ),
  broken(
    "a step selects no workloads; set consumersOf, consumersOfTargets, ownedByTargets or targets",
    withRollout({ steps: [{ name: "a" }] }),
  ),
  broken(
    "this is not a duration; write whole numbers with the units ms, s, m or h, such as 90s or 1h30m",
    withRollout({ steps: [{ name: "a", consumersOf: ["bucket"], timeout: "1.5s" }] }),
  ),
  broken(
    'an entry of from needs exactly one of namespace, namespaceSelector and composition; for all namespaces, set namespaceSelector.names to ["*"]',
    grant({ namespace: "a", composition: "b" }),
  ),
  broken(
    "namespaceUID needs namespace; set namespace to the name of the namespace with this uid",
    grant({ composition: "b", namespaceUID: "0" }),
  ),
  broken("this is not a uid; copy metadata.uid of the namespace", grant({ namespace: "a", namespaceUID: "X" })),
  broken(
    'an entry of to needs exactly one of name and selector; for all objects of the kind, set selector.names to ["*"]',
    grant({ namespace: "a" }, { kind: "Secret" }),
  ),
  broken(
    "the name of a BindingComposition may have at most 63 characters, because it is the value of a label of its bindings; use a shorter name",
    composition("a".repeat(64)),
  ),
  broken(
    "auth and paths must be set together; add paths that bindings may read after the login, such as kv/{namespace}/*; without auth, remove paths",
    connection({ auth: undefined }),
  ),
  broken(
    "this is not a namespace in Vault; write it without / at the start, in letters, digits, _, dots and -, such as team/app",
    connection({ namespace: "/a" }),
  ),
  broken(
    "a namespace may not contain . or .. between slashes; write the exact name of the namespace in Vault",
    connection({ namespace: "a/../b" }),
  ),
  broken(
    "ca needs exactly one of secret and configMap",
    connection({ tls: { ca: { secret: { name: "a", key: "a" }, configMap: { name: "a", key: "a" } } } }),
  ),
  broken(
    "this is not a key of a Secret or ConfigMap; use letters, digits, -, _ and dots, such as ca.crt",
    connection({ tls: { ca: { secret: { name: "a", key: "a/b" } } } }),
  ),
  broken(
    "this is not a host name; write it without scheme and port, such as vault.example.com",
    connection({ tls: { serverName: "https://a" } }),
  ),
  broken("auth needs exactly one of kubernetes, appRole and token", connection({ auth: {} })),
  broken(
    "this is not a mount path; write it without / at both ends, in letters, digits, _, dots and -, such as kubernetes",
    connection({ auth: { kubernetes: { ...kubernetes, mount: "/a" } } }),
  ),
  broken(
    "a mount may not contain . or .. between slashes; write the exact mount path, such as kubernetes",
    connection({ auth: { kubernetes: { ...kubernetes, mount: "a/.." } } }),
  ),
  broken(
    "this is not a role in Vault; use letters, digits, _, dots, - and {namespace}, such as inlay-{namespace}",
    connection({ auth: { kubernetes: { role: "a b" } } }),
  ),
  broken("token needs exactly one of secret and configMap", connection({ auth: { token: {} } })),
  broken(
    "this is not mount/path; write it without / at both ends, without spaces, and with no braces but {namespace}, such as kv/{namespace}/*",
    connection({ paths: ["/kv"] }),
  ),
  broken(
    "a path may not contain . or .. between slashes; write the path as vault kv get shows it, such as kv/{namespace}/*",
    connection({ paths: ["kv/../a"] }),
  ),
  broken(
    "* or ? before {namespace}, or next to it between the same slashes, would let bindings of one namespace read paths of another; write {namespace} first, such as kv/{namespace}/*",
    connection({ paths: ["kv/*/{namespace}"] }),
  ),
  broken("timeout is not a duration from 100ms to 60s; write, for example, 5s", connection({ timeout: "2m" })),
];
