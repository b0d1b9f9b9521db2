/** Copies have the type of their source, its labels if the tool copies them, and both maps of a ConfigMap. */
import assert from "node:assert/strict";
import type { JsonObject, KubeObject } from "../../../src/apimachinery/objects.ts";
import { readSources } from "../../../src/migrate/live-sources.ts";
import { migrate } from "../../../src/migrate/migration.ts";
import { TOOLS } from "../../../src/migrate/tools.ts";
import { convert, specsOf } from "./convert.ts";

const TYPE = "kubernetes.io/dockerconfigjson";
const NOTES = { "kubectl.kubernetes.io/last-applied-configuration": "{}", "example.com/owner": "platform" };
const secret = (annotations: object = {}) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name: "login",
    namespace: "platform",
    labels: { team: "web" },
    annotations: { ...NOTES, ...annotations },
  },
  type: TYPE,
  data: { ".dockerconfigjson": "e30K" },
});
const POLICY = {
  apiVersion: "kyverno.io/v1",
  kind: "ClusterPolicy",
  metadata: { name: "sync" },
  spec: {
    generateExisting: true,
    rules: [
      {
        name: "clone",
        match: { any: [{ resources: { kinds: ["Namespace"] } }] },
        generate: {
          apiVersion: "v1",
          kind: "Secret",
          name: "login",
          namespace: "{{request.object.metadata.name}}",
          synchronize: true,
          clone: { namespace: "platform", name: "login" },
        },
      },
    ],
  },
};
const PUSH = [
  {
    apiVersion: "external-secrets.io/v1",
    kind: "SecretStore",
    metadata: { name: "central", namespace: "platform" },
    spec: { provider: { kubernetes: { remoteNamespace: "central" } } },
  },
  {
    apiVersion: "external-secrets.io/v1alpha1",
    kind: "PushSecret",
    metadata: { name: "push", namespace: "platform" },
    spec: {
      secretStoreRefs: [{ name: "central", kind: "SecretStore" }],
      selector: { secret: { name: "login" } },
      data: [{ match: { remoteRef: { remoteKey: "copy" } } }],
    },
  },
];

const targetsOf = (specs: readonly JsonObject[]) => specs.flatMap(({ targets }) => targets as JsonObject[]);
const manifestsOf = (specs: readonly JsonObject[]) =>
  targetsOf(specs).map(({ create }) => (create as JsonObject | undefined)?.["manifest"]);

const clusterExternalSecret = (namespaces: object) => ({
  apiVersion: "external-secrets.io/v1",
  kind: "ClusterExternalSecret",
  metadata: { name: "login", labels: { team: "web" } },
  spec: {
    externalSecretName: "login",
    ...namespaces,
    externalSecretSpec: {
      secretStoreRef: { name: "central", kind: "ClusterSecretStore" },
      dataFrom: [{ extract: { key: "login" } }],
    },
  },
});

describe("the copies of a Secret", () => {
  it("have its type, and its labels and annotations as the tool copies them", async () => {
    const whole = { labels: { team: "web" }, annotations: { "example.com/owner": "platform" } };
    const expected: Record<string, [readonly object[], object]> = {
      kyverno: [[POLICY, secret()], { type: TYPE, metadata: whole }],
      "external-secrets": [[...PUSH, secret()], { type: TYPE, metadata: whole }],
      replicator: [
        [secret({ "replicator.v1.mittwald.de/replicate-to": "shop" })],
        { type: TYPE, metadata: { labels: { team: "web" } } },
      ],
      reflector: [
        [
          secret({
            "reflector.v1.k8s.emberstack.com/reflection-allowed": "true",
            "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
          }),
        ],
        { type: TYPE },
      ],
    };
    for (const [tool, [objects, manifest]] of Object.entries(expected)) {
      const migration = await convert(tool, objects);
      assert.deepEqual([migration.lost, migration.others], [[], 0], tool);
      assert.deepEqual(manifestsOf(specsOf(migration)), [manifest], tool);
    }
  });

  it("by a ClusterExternalSecret are in no namespace if it selects none", async () => {
    const [store] = PUSH;
    const central = { ...store, kind: "ClusterSecretStore", metadata: { name: "central" } };
    const { converted, lost } = await convert("external-secrets", [central, clusterExternalSecret({})]);
    assert.deepEqual([converted, lost.length], [[], 1]);
  });

  it("by a ClusterExternalSecret do not have its own labels, which are those of the binding", async () => {
    const [store] = PUSH;
    const central = { ...store, kind: "ClusterSecretStore", metadata: { name: "central" } };
    const migration = await convert("external-secrets", [central, clusterExternalSecret({ namespaceSelector: {} })]);
    assert.deepEqual([migration.lost, manifestsOf(specsOf(migration))], [[], [{}]]);
    assert.deepEqual(migration.converted[0]?.object["metadata"], {
      name: "login",
      namespace: "central",
      labels: { team: "web" },
    });
  });

  it("are suspended if the source is not known", async () => {
    for (const [tool, objects] of Object.entries({ kyverno: [POLICY], "external-secrets": PUSH })) {
      const migration = await convert(tool, objects);
      assert.deepEqual([specsOf(migration)[0]?.["suspend"], migration.lost.length], [true, 1], tool);
      assert.deepEqual(migration.missing, [{ kind: "Secret", namespace: "platform", name: "login" }], tool);
    }
  });

  it("get the type and labels from the cluster, of which no value is kept", async () => {
    const load = TOOLS["kyverno"] ?? assert.fail();
    const files = [{ name: "a", text: JSON.stringify(POLICY) }];
    const { missing } = migrate(await load(), files, "default");
    const object = secret() as unknown as KubeObject;
    const { found } = await readSources({ get: async (_ref, take) => ({ state: "Found", it: take(object) }) }, missing);
    assert.ok(!JSON.stringify(found).includes("e30K"));
    const migration = migrate(await load(), files, "default", found);
    assert.deepEqual([migration.lost, (manifestsOf(specsOf(migration))[0] as JsonObject)["type"]], [[], TYPE]);
  });

  it("say why the source could not be read", async () => {
    const unreadable = { get: async () => ({ state: "Unreadable", message: "you may not" }) as const };
    const objects = [{ kind: "Secret", namespace: "a", name: "b" }];
    assert.deepEqual(await readSources(unreadable, objects), { found: [], unread: ["you may not"] });
  });
});

describe("the copies of a ConfigMap", () => {
  const configMap = (more: object) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "settings",
      namespace: "platform",
      annotations: { "replicator.v1.mittwald.de/replicate-to": "shop" },
    },
    ...more,
  });
  const fieldsOf = async (more: object) =>
    targetsOf(specsOf(await convert("replicator", [configMap(more)])))[0]?.["fields"] as JsonObject[];

  it("have both data and binaryData", async () => {
    const keys = ["^(logo[.]png|icon)$"];
    const all = { path: "data", from: { source: "source" } };
    assert.deepEqual(await fieldsOf({ data: { level: "info" } }), [all]);
    assert.deepEqual(await fieldsOf({ binaryData: { icon: "" } }), [{ ...all, path: "binaryData" }]);
    assert.deepEqual(await fieldsOf({ data: { level: "info" }, binaryData: { "logo.png": "", icon: "" } }), [
      { path: "data", from: { source: "source", exclude: keys } },
      { path: "binaryData", from: { source: "source", include: keys } },
    ]);
  });

  it("select each key of binaryData and no other, and report more keys than a field can select", async () => {
    const keysOf = (count: number) => Array.from({ length: count }, (_, at) => `key-${at}.png`);
    const dataOf = (count: number) => ({
      data: { level: "info" },
      binaryData: Object.fromEntries(keysOf(count).map((key) => [key, ""])),
    });
    const [, second = assert.fail()] = await fieldsOf(dataOf(200));
    const { include } = second["from"] as { include: string[] };
    assert.ok(include.length <= 16 && include.every((each) => each.length <= 256));
    const matches = (key: string) => include.some((each) => new RegExp(each).test(key));
    assert.ok(keysOf(200).every(matches) && !["key-200.png", "key-1xpng", "akey-1.png"].some(matches));
    const migration = await convert("replicator", [configMap(dataOf(5_000))]);
    assert.deepEqual([specsOf(migration)[0]?.["suspend"], migration.lost.length], [true, 1]);
  });
});

describe("a Certificate of cert-manager", () => {
  const certificate = (annotations: object, more: object = {}) => ({
    apiVersion: "cert-manager.io/v1",
    kind: "Certificate",
    metadata: { name: "wildcard", namespace: "certs", ...more },
    spec: {
      secretName: "wildcard-tls",
      issuerRef: { name: "letsencrypt", kind: "ClusterIssuer" },
      dnsNames: ["*.example.com"],
      secretTemplate: { annotations },
    },
  });
  const PREFIX = "reflector.v1.k8s.emberstack.com/";
  const AUTO = { [`${PREFIX}reflection-allowed`]: "true", [`${PREFIX}reflection-auto-enabled`]: "true" };

  it("copies its Secret by the annotations of its secretTemplate", async () => {
    const migration = await convert("reflector", [certificate(AUTO)]);
    const [spec] = specsOf(migration);
    assert.deepEqual([migration.lost, spec?.["sources"]], [[], [{ name: "source", secret: { name: "wildcard-tls" } }]]);
    assert.deepEqual(manifestsOf(specsOf(migration)), [{ type: "kubernetes.io/tls" }]);
  });

  it("adds nothing if its Secret is in the files", async () => {
    const secretOfIt = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "wildcard-tls", namespace: "certs", annotations: AUTO },
      type: "kubernetes.io/tls",
    };
    const { converted, lost } = await convert("reflector", [certificate(AUTO), secretOfIt]);
    assert.deepEqual([converted.length, lost], [1, []]);
  });
});

describe("the lists of namespaces of Reflector", () => {
  it("select a namespace that matches the names or the labels", async () => {
    const PREFIX = "reflector.v1.k8s.emberstack.com/";
    const annotations = {
      [`${PREFIX}reflection-allowed`]: "true",
      [`${PREFIX}reflection-auto-enabled`]: "true",
      [`${PREFIX}reflection-auto-namespaces`]: "shop",
      [`${PREFIX}reflection-auto-namespaces-selector`]: "team=web",
    };
    const selectors = targetsOf(specsOf(await convert("reflector", [secret(annotations)]))).map(
      ({ namespaceSelector }) => namespaceSelector,
    );
    assert.deepEqual(selectors, [
      { names: ["shop"] },
      {
        matchExpressions: [{ key: "team", operator: "In", values: ["web"] }],
        exceptNames: ["shop", "platform"],
      },
    ]);
  });
});
