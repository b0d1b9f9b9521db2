/** The trace of a Secret through bindings, grants, accounts, Ingresses and Gateways, and its text. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import {
  bindingTraces,
  connectionUses,
  granteesOf,
  isGatewayCertificate,
  isIngressCertificate,
  pullsWith,
  type Trace,
  type Traced,
  writerTrace,
} from "../../../src/explain/trace-result.ts";
import { traceText } from "../../../src/explain/trace-text.ts";
import { vault as vaultKind } from "../../../src/sources/vault.ts";
import { compileTemplate } from "../../../src/transform/template.ts";
import { bindingOf, harbor, KINDS } from "../bindings.ts";

const bucket: Traced = { kind: "Secret", namespace: "registry", name: "bucket" };
const read = (text: string) => compileTemplate(text).references;
const objectOf = (more: object): KubeObject =>
  ({ apiVersion: "v1", kind: "X", metadata: { name: "x", namespace: "registry" }, ...more }) as unknown as KubeObject;

describe("the trace of a Secret", () => {
  it("lists the fields that use it, and the workloads that restart", () => {
    const sources = [{ name: "s3", secret: { name: "bucket" } }, { configMap: { name: "bucket" } }];
    const fields = [
      { path: "a", from: { source: "s3", key: "key" } },
      { path: "b", template: "{{bucket.x}}" },
      { path: "c", from: { source: "s3" } },
      { path: "d", from: { source: "s3", include: ["^tls"], exclude: ["key$"] } },
    ];
    const rollout = { consumersOf: ["s3"], kinds: KINDS };
    const targets = [harbor(fields), { ...harbor(fields), name: undefined, namespaceSelector: {}, selector: {} }];
    const conditions = [{ type: "Ready", status: "True", reason: "Synced" }];
    const [traced, ...others] = bindingTraces(bindingOf({ sources, targets, rollout }, { conditions }), bucket, read);
    assert.deepEqual(others, []);
    const taken = [
      { path: "a", keys: ["key"] },
      { path: "c", keys: ["all of it"] },
      { path: "d", keys: ["keys that match ^tls, but not key$"] },
    ];
    const target = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", fields: taken };
    assert.deepEqual(traced, {
      binding: "registry/harbor-s3",
      source: "s3",
      account: "inlay",
      reason: "Synced",
      suspended: false,
      targets: [
        { ...target, object: "registry/harbor" },
        { ...target, object: "(selected)" },
      ],
      restarts: ["workloads whose pods refer to s3, among Deployment, StatefulSet, DaemonSet"],
    });
  });

  it("omits a binding that reads another object with the same name", () => {
    const elsewhere = [{ secret: { name: "bucket", namespace: "elsewhere" } }];
    assert.deepEqual(bindingTraces(bindingOf({ sources: elsewhere }), bucket, read), []);
    assert.deepEqual(bindingTraces(bindingOf({ sources: [{ configMap: { name: "bucket" } }] }), bucket, read), []);
  });

  it("lists the bindings that write into it, by spec and by status", () => {
    const target = {
      apiVersion: "v1",
      kind: "Secret",
      name: "bucket",
      fields: [{ path: "data.b" }, { path: "data.a" }],
    };
    assert.deepEqual(writerTrace(bindingOf({ targets: [target] }), bucket), {
      binding: "registry/harbor-s3",
      fields: ["data.a", "data.b"],
    });
    const record = { apiVersion: "v1", kind: "Secret", namespace: "registry", name: "bucket", paths: ["data.c"] };
    assert.deepEqual(writerTrace(bindingOf({}, { targets: [record] }), bucket)?.fields, ["data.c"]);
    const others = [{ kind: "ConfigMap" }, { name: "x" }, { namespace: "x" }, { apiVersion: "example.com/v1" }];
    for (const other of others) {
      assert.equal(writerTrace(bindingOf({ targets: [{ ...target, ...other }] }), bucket), undefined);
    }
  });

  it("describes who may read by a grant", () => {
    const selector = { names: ["team-*"], matchLabels: { env: "prod" } };
    const from = [
      { namespace: "a" },
      { namespace: "b", namespaceUID: "b2" },
      { namespaceSelector: selector, serviceAccountName: "inlay" },
      { composition: "harbors" },
    ];
    assert.deepEqual(granteesOf({ from, to: [] } as unknown as Parameters<typeof granteesOf>[0]), [
      "any account of namespace a",
      "any account of namespace b with the uid b2",
      "account inlay of namespaces that match team-*, env=prod",
      "any account in bindings of BindingComposition harbors",
    ]);
  });

  it("finds image pull secrets and certificates, also those of Gateways in other namespaces", () => {
    assert.equal(pullsWith(objectOf({ imagePullSecrets: [{ name: "x" }, { name: "bucket" }] }), "bucket"), true);
    assert.equal(pullsWith(objectOf({ secrets: [{ name: "bucket" }] }), "bucket"), false);
    assert.equal(isIngressCertificate(objectOf({ spec: { tls: [{ secretName: "bucket" }] } }), "bucket"), true);
    assert.equal(isIngressCertificate(objectOf({ spec: { tls: [{ hosts: ["bucket"] }] } }), "bucket"), false);
    assert.equal(isIngressCertificate(objectOf({}), "bucket"), false);
    const isOf = (reference: object, namespace = "registry") => {
      const gateway = objectOf({ spec: { listeners: [{}, { tls: { certificateRefs: [reference] } }] } });
      return isGatewayCertificate({ ...gateway, metadata: { ...gateway.metadata, namespace } }, bucket);
    };
    assert.equal(isOf({ name: "bucket" }), true);
    assert.equal(isOf({ name: "bucket" }, "edge"), false);
    assert.equal(isOf({ name: "bucket", namespace: "registry", kind: "Secret", group: "" }, "edge"), true);
    assert.equal(isOf({ name: "bucket", kind: "Certificate", group: "example.com" }), false);
  });

  const none: Trace = {
    object: { ...bucket, state: "Found", resourceVersion: "7" },
    bindings: [],
    writers: [],
    grants: [],
    workloads: [],
    serviceAccounts: [],
    certificates: [],
    connections: [],
    unreadable: [],
  };
  const workload = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    name: "core",
    references: ["env", "volume"],
    restarts: [],
  };

  it("prints which binding restarts each workload, and which workloads Inlay does not restart", () => {
    const by = (binding: string, suspended = false) => [{ binding, suspended }];
    const workloads = [
      { ...workload, keys: ["a", "b"], restarts: [...by("registry/harbor-s3"), ...by("registry/other", true)] },
      { ...workload, name: "web" },
      { ...workload, kind: "CronJob", name: "nightly" },
      { ...workload, kind: "Pod", name: "db-0", owner: "Cluster db" },
      { ...workload, namespace: "team-a", copy: { kind: "Secret", name: "s3" }, references: ["env"] },
    ];
    assert.deepEqual(traceText({ ...none, workloads }, 120), [
      "Secret registry/bucket, version 7",
      "",
      "WORKLOADS",
      "  WORKLOAD                REFERS BY         KEYS  RESTARTS",
      "  Deployment core         env, volume       a, b  by binding registry/harbor-s3, registry/other (suspended)",
      "  Deployment web          env, volume       all   not by Inlay",
      "  CronJob nightly         env, volume       all   at its next run",
      "  Pod db-0 of Cluster db  env, volume       all   not by Inlay",
      "  Deployment team-a/core  env of Secret s3  all   not by Inlay",
    ]);
  });

  it("finds the VaultConnections that use it, and how", () => {
    const usesOf = (spec: object, traced: Traced = bucket) =>
      connectionUses(vaultKind.connection?.namedBy(objectOf({ spec })) ?? [], traced);
    const secret = { name: "bucket", key: "x" };
    assert.deepEqual(usesOf({ tls: { ca: { secret } }, auth: { appRole: { secretID: { secret } } } }), [
      "CA",
      "SecretID",
    ]);
    assert.deepEqual(usesOf({ auth: { token: { secret } } }), ["token"]);
    const others = { tls: { ca: { configMap: secret } }, auth: { token: { secret: { ...secret, name: "other" } } } };
    assert.deepEqual(usesOf(others), []);
    assert.deepEqual(usesOf({ tls: {}, auth: { kubernetes: { role: "bucket" } } }), []);
    assert.deepEqual(usesOf(others, { ...bucket, kind: "ConfigMap" }), ["CA"]);
    const connections = [{ kind: "VaultConnection", name: "vault", uses: ["CA", "SecretID"] }];
    assert.deepEqual(traceText({ ...none, connections }, 120).slice(1), [
      "",
      "USED BY CONNECTIONS",
      "  CONNECTION             USES IT AS",
      "  VaultConnection vault  CA, SecretID",
    ]);
  });

  it("omits a binding whose source from Vault has the same name", () => {
    const vault = { connection: { name: "bucket" }, data: { mount: "kv", path: "bucket" } };
    assert.deepEqual(bindingTraces(bindingOf({ sources: [{ name: "bucket", vault }] }), bucket, read), []);
  });

  it("prints that nothing refers to it, or nothing that the user may read", () => {
    assert.deepEqual(traceText(none, 120), ["Secret registry/bucket, version 7", "", "nothing refers to it"]);
    const unreadable = ["you may not list pods in namespace registry"];
    assert.deepEqual(traceText({ ...none, unreadable }, 120), [
      "Secret registry/bucket, version 7",
      "",
      "nothing that you may read refers to it",
      "",
      "NOT READ",
      "  you may not list pods in namespace registry",
    ]);
  });
});
