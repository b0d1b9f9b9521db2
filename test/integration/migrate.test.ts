/** Shows that the bindings that `inlay migrate` prints copy the values, and restart and protect as the other tool did. */
import assert from "node:assert/strict";
import { migrate } from "../../src/migrate/migration.ts";
import { TOOLS } from "../../src/migrate/tools.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type Rule, type TestNamespace, usualRules } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const PATHS: Record<string, string> = { SecretBinding: "secretbindings", SecretGrant: "secretgrants" };
const writeRules: Rule[] = [
  {
    apiGroups: [""],
    resources: ["secrets", "configmaps"],
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
  },
];
const harborRules = usualRules.slice(1);

/** Converts the objects, and creates the result. Nothing of them is lost. */
async function apply(tool: string, team: TestNamespace, objects: readonly object[]): Promise<void> {
  const load = TOOLS[tool] ?? assert.fail(tool);
  const text = objects.map((object) => JSON.stringify(object)).join("\n---\n");
  const { converted, lost } = migrate(await load(), [{ name: "input.yaml", text }], team.namespace);
  assert.deepEqual(lost, []);
  for (const { object } of converted) {
    const { kind, metadata } = object as AnyObject;
    const path = `/apis/inlay.dev/v1alpha1/namespaces/${metadata.namespace}/${PATHS[kind]}`;
    await team.api.create(path, object as AnyObject);
  }
}

const secret = (name: string, namespace: string, annotations: object, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace, annotations },
  ...more,
});

describe("what inlay migrate prints", () => {
  let team: TestNamespace;
  let other: TestNamespace;
  let value: string;

  beforeEach(async () => {
    [team, other] = await Promise.all([
      createNamespace({ rules: [...writeRules, ...harborRules] }),
      createNamespace({ rules: writeRules }),
    ]);
    await team.grant(writeRules, { namespace: other.namespace, role: "other" });
    value = secretText("migrated");
    await team.secret("bucket", { key: value });
  });

  const holds = (name: string, expected: () => string, key = "key", namespace = other.namespace) =>
    eventually(async () => {
      const { data } = await team.api.get(`/api/v1/namespaces/${namespace}/secrets/${name}`);
      assert.equal(data?.[key], Buffer.from(expected()).toString("base64"));
    });
  const rotate = async () => {
    value = secretText("rotated");
    await team.secret("bucket", { key: value });
  };

  it("for Kyverno clones and protects a Secret", async () => {
    const resources = { kinds: ["Secret"], names: ["bucket"], namespaces: [team.namespace] };
    const policy = {
      apiVersion: "kyverno.io/v1",
      kind: "ClusterPolicy",
      metadata: { name: "sync" },
      spec: {
        generateExisting: true,
        rules: [
          {
            name: "clone",
            match: { any: [{ resources: { kinds: ["Namespace"], names: [other.namespace] } }] },
            generate: {
              apiVersion: "v1",
              kind: "Secret",
              name: "bucket",
              namespace: "{{request.object.metadata.name}}",
              synchronize: true,
              clone: { namespace: team.namespace, name: "bucket" },
            },
          },
          {
            name: "protect",
            match: { any: [{ resources: { ...resources, operations: ["UPDATE", "DELETE"] } }] },
            exclude: { any: [{ clusterRoles: ["cluster-admin"] }] },
            validate: { failureAction: "Enforce", deny: {} },
          },
        ],
      },
    };
    await apply("kyverno", team, [policy, secret("bucket", team.namespace, {})]);
    await holds("bucket", () => value);
    const { metadata, spec } = await team.api.get(team.bindingPath("bucket"));
    assert.deepEqual([metadata.labels["inlay.dev/protects"], spec.sources[0].protect], ["true", {}]);
    await rotate();
    await holds("bucket", () => value);
  });

  it("for Kyverno restarts the workloads that a conditional anchor selects in the namespace of a clone, and no others", async () => {
    await Promise.all([
      team.grant(rolloutRules, { namespace: other.namespace, role: "rollout" }),
      team.grant(rolloutRules, { role: "rollout" }),
    ]);
    const resources = { kinds: ["Namespace"], namespaces: [other.namespace] };
    const condition = {
      "(containers)": [{ "(env)": [{ "(valueFrom)": { "(secretKeyRef)": { "(name)": "bucket" } } }] }],
    };
    const metadata = { annotations: { "example.com/version": "{{request.object.metadata.resourceVersion}}" } };
    const rules = [
      {
        name: "clone",
        match: { any: [{ resources }] },
        generate: {
          apiVersion: "v1",
          kind: "Secret",
          name: "bucket",
          namespace: "{{request.object.metadata.name}}",
          synchronize: true,
          clone: { namespace: team.namespace, name: "bucket" },
        },
      },
      {
        name: "reload",
        match: { any: [{ resources: { kinds: ["Secret"], names: ["bucket"] } }] },
        preconditions: { all: [{ key: "{{request.operation}}", operator: "Equals", value: "UPDATE" }] },
        mutate: {
          targets: [{ apiVersion: "apps/v1", kind: "Deployment", namespace: "{{request.namespace}}" }],
          patchStrategicMerge: { spec: { template: { metadata, "(spec)": condition } } },
        },
      },
    ];
    await apply("kyverno", team, [
      {
        apiVersion: "kyverno.io/v1",
        kind: "ClusterPolicy",
        metadata: { name: "reload" },
        spec: { generateExisting: true, rules },
      },
      secret("bucket", team.namespace, {}, { type: "Opaque" }),
    ]);
    await holds("bucket", () => value);
    const [near, far] = [new Workloads(team), new Workloads(other)];
    const files = { pods: { volumes: [{ name: "files", secret: { secretName: "bucket" } }] } };
    await Promise.all([near.deploy({ idle: {} }), far.deploy({ idle: {}, files, web: { env: { bucket: ["key"] } } })]);
    await near.until("bucket", "RolledOut");
    await rotate();
    const versionOf = async (workloads: Workloads, name: string) =>
      (await workloads.annotations(name))["example.com/version"];
    await eventually(async () => assert.notEqual(await versionOf(far, "web"), undefined));
    await near.until("bucket", "RolledOut");
    assert.deepEqual(await far.restarts(), { idle: 0, files: 0, web: 1 });
    assert.deepEqual(await near.restarts(), { idle: 0 });
  });

  it("for Kyverno writes a key of a Secret into a field of a custom resource", async () => {
    await team.harbor();
    const policy = {
      apiVersion: "kyverno.io/v1",
      kind: "ClusterPolicy",
      metadata: { name: "harbor-s3" },
      spec: {
        mutateExistingOnPolicyUpdate: true,
        rules: [
          {
            name: "copy",
            match: { any: [{ resources: { kinds: ["Secret"], names: ["bucket"], namespaces: [team.namespace] } }] },
            mutate: {
              targets: [
                {
                  apiVersion: "goharbor.io/v1beta1",
                  kind: "HarborCluster",
                  name: "harbor",
                  namespace: "{{ request.namespace }}",
                },
              ],
              patchStrategicMerge: {
                spec: {
                  storage: { spec: { s3: { accesskey: "{{ request.object.data.key | base64_decode(@) }}" } } },
                },
              },
            },
          },
        ],
      },
    };
    await apply("kyverno", team, [policy]);
    await eventually(async () => assert.equal((await team.s3()).accesskey, value));
    await rotate();
    await eventually(async () => assert.equal((await team.s3()).accesskey, value));
  });

  it("for kubernetes-replicator and Reflector copies a Secret, and fills a copy that names it", async () => {
    await other.secret("pulled", {});
    await apply("replicator", team, [
      secret("bucket", team.namespace, {
        "replicator.v1.mittwald.de/replicate-to": other.namespace,
        "replicator.v1.mittwald.de/replication-allowed": "true",
        "replicator.v1.mittwald.de/replication-allowed-namespaces": other.namespace,
      }),
      secret("pulled", other.namespace, { "replicator.v1.mittwald.de/replicate-from": `${team.namespace}/bucket` }),
    ]);
    await other.grant(writeRules, { namespace: team.namespace, role: "source" });
    await team.secret("mirrored", { key: value });
    await apply("reflector", team, [
      secret("mirrored", team.namespace, {
        "reflector.v1.k8s.emberstack.com/reflection-allowed": "true",
        "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
        "reflector.v1.k8s.emberstack.com/reflection-auto-namespaces": other.namespace,
      }),
    ]);
    for (const name of ["bucket", "pulled", "mirrored"]) await holds(name, () => value);
    await rotate();
    for (const name of ["bucket", "pulled"]) await holds(name, () => value);
  });

  it("gives copies the type and labels of the Secret, and both maps of the ConfigMap", async () => {
    const notes = { "replicator.v1.mittwald.de/replicate-to": other.namespace };
    const login = {
      ...secret("login", team.namespace, notes, { type: "example.com/login" }),
      metadata: { name: "login", namespace: team.namespace, annotations: notes, labels: { team: "web" } },
    };
    const maps = { data: { level: "info" }, binaryData: { "logo.png": "/w==" } };
    const settings = { ...secret("settings", team.namespace, notes, maps), kind: "ConfigMap" };
    await team.api.create(team.path("v1", "secrets"), { ...login, stringData: { key: value } });
    await team.api.create(team.path("v1", "configmaps"), settings);
    await apply("replicator", team, [login, settings]);
    await holds("login", () => value);
    const copy = await team.api.get(other.path("v1", "secrets/login"));
    assert.deepEqual([copy["type"], copy.metadata.labels?.["team"]], ["example.com/login", "web"]);
    await eventually(async () => {
      const { data, binaryData } = await team.api.get(other.path("v1", "configmaps/settings"));
      assert.deepEqual({ data, binaryData }, maps);
    });
  });

  it("for patch-operator writes the fields of a custom resource", async () => {
    await team.harbor();
    await apply("patch-operator", team, [
      {
        apiVersion: "redhatcop.redhat.io/v1alpha1",
        kind: "Patch",
        metadata: { name: "harbor", namespace: team.namespace },
        spec: {
          serviceAccountRef: { name: "inlay" },
          patches: {
            harbor: {
              targetObjectRef: {
                apiVersion: "goharbor.io/v1beta1",
                kind: "HarborCluster",
                name: "harbor",
                namespace: team.namespace,
              },
              patchTemplate:
                'spec:\n  storage:\n    spec:\n      s3:\n        accesskey: "{{ (index . 1).data.key | b64dec }}"\n',
              patchType: "application/merge-patch+json",
              sourceObjectRefs: [{ apiVersion: "v1", kind: "Secret", name: "bucket", namespace: team.namespace }],
            },
          },
        },
      },
    ]);
    await eventually(async () => assert.equal((await team.s3()).accesskey, value));
    await rotate();
    await eventually(async () => assert.equal((await team.s3()).accesskey, value));
  });

  it("for patch-operator writes the values that an annotation looks up", async () => {
    await team.harbor();
    const harbor = await team.api.get(team.path("goharbor.io/v1beta1", "harborclusters/harbor"));
    const key = '{{ (lookup "v1" "Secret" .metadata.namespace "bucket").data.key | b64dec }}';
    const patch = `spec:\n  storage:\n    spec:\n      s3:\n        accesskey: ${key}\n`;
    const annotations = {
      "redhat-cop.redhat.io/patch": patch,
      "redhat-cop.redhat.io/patch-type": "application/merge-patch+json",
    };
    await apply("patch-operator", team, [{ ...harbor, metadata: { ...harbor.metadata, annotations } }]);
    await eventually(async () => assert.equal((await team.s3()).accesskey, value));
  });

  it("for External Secrets reads a Secret of another namespace, with a template", async () => {
    await other.grant(writeRules, { namespace: team.namespace, role: "source" });
    await apply("external-secrets", other, [
      {
        apiVersion: "external-secrets.io/v1",
        kind: "SecretStore",
        metadata: { name: "store", namespace: other.namespace },
        spec: { provider: { kubernetes: { remoteNamespace: team.namespace } } },
      },
      {
        apiVersion: "external-secrets.io/v1",
        kind: "ExternalSecret",
        metadata: { name: "config", namespace: other.namespace },
        spec: {
          secretStoreRef: { name: "store" },
          target: { template: { data: { url: "https://{{ .password }}@db", plain: "{{ .password }}" } } },
          data: [{ secretKey: "password", remoteRef: { key: "bucket", property: "key" } }],
        },
      },
    ]);
    await holds("config", () => `https://${value}@db`, "url");
    await rotate();
    await holds("config", () => value, "plain");
  });
});
