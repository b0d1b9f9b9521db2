/** Copies take the labels and annotations of their source as those of the tool, and lose the keys of others if those of the tool do. */
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
const createsOf = (specs: readonly JsonObject[]) => targetsOf(specs).map(({ create }) => create);
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
  it("have its labels and annotations, and none of the keys of others, as with the tool", async () => {
    const copy = { labels: ["*"], annotations: ["*"] };
    const expected: Record<string, [readonly object[], object]> = {
      kyverno: [[POLICY, secret()], { adopt: "Equal", exact: true, copy, manifest: {} }],
      "external-secrets": [[...PUSH, secret()], { adopt: "Any", copy, manifest: {} }],
      replicator: [
        [secret({ "replicator.v1.mittwald.de/replicate-to": "shop" })],
        { adopt: "Equal", copy: { labels: ["*"] }, manifest: {} },
      ],
      reflector: [
        [
          secret({
            "reflector.v1.k8s.emberstack.com/reflection-allowed": "true",
            "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
          }),
        ],
        { adopt: "Equal", exact: true, manifest: {} },
      ],
    };
    for (const [tool, [objects, create]] of Object.entries(expected)) {
      const migration = await convert(tool, objects);
      assert.deepEqual(migration.lost, [], tool);
      assert.deepEqual(createsOf(specsOf(migration)), [create], tool);
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
    assert.deepEqual([migration.lost, manifestsOf(specsOf(migration))], [[], [{ type: "Opaque" }]]);
    assert.deepEqual(migration.converted[0]?.object["metadata"], {
      name: "login",
      namespace: "central",
      labels: { team: "web" },
    });
  });

  const pushOfKey = () => {
    const [store, push] = structuredClone(PUSH) as [object, { spec: { data: object[] } }];
    push.spec.data = [{ match: { secretKey: "a", remoteRef: { remoteKey: "copy", property: "b" } } }];
    return [store, push];
  };

  it("by single keys have its type, labels and annotations in the manifest, and are suspended if it is not known", async () => {
    const metadata = { labels: { team: "web" }, annotations: { "example.com/owner": "platform" } };
    const known = await convert("external-secrets", [...pushOfKey(), secret()]);
    assert.deepEqual([known.lost, manifestsOf(specsOf(known))], [[], [{ type: TYPE, metadata }]]);
    const unknown = await convert("external-secrets", pushOfKey());
    assert.deepEqual([specsOf(unknown)[0]?.["suspend"], unknown.lost.length], [true, 1]);
    assert.deepEqual(unknown.missing, [{ kind: "Secret", namespace: "platform", name: "login" }]);
  });

  it("are immutable with Kyverno if it is in the cluster, of which no value is kept", async () => {
    const load = TOOLS["kyverno"] ?? assert.fail();
    const files = [{ name: "a", text: JSON.stringify(POLICY) }];
    const { missing } = migrate(await load(), files, "default");
    const object = { ...secret(), immutable: true } as unknown as KubeObject;
    const { found } = await readSources({ get: async (_ref, take) => ({ state: "Found", it: take(object) }) }, missing);
    assert.ok(!JSON.stringify(found).includes("e30K"));
    const migration = migrate(await load(), files, "default", found);
    assert.deepEqual([migration.lost, manifestsOf(specsOf(migration))], [[], [{ immutable: true }]]);
  });

  it("say why the source could not be read", async () => {
    const unreadable = { get: async () => ({ state: "Unreadable", message: "you may not" }) as const };
    const objects = [{ kind: "Secret", namespace: "a", name: "b" }];
    assert.deepEqual(await readSources(unreadable, objects), { found: [], unread: ["you may not"] });
  });
});

describe("the copies of all data of several sources", () => {
  it("have them in order, and the later one wins", async () => {
    const [store] = PUSH;
    const extract = (key: string) => ({ extract: { key } });
    const external = {
      apiVersion: "external-secrets.io/v1",
      kind: "ExternalSecret",
      metadata: { name: "login", namespace: "platform" },
      spec: {
        secretStoreRef: { name: "central", kind: "SecretStore" },
        dataFrom: [extract("defaults"), extract("login")],
      },
    };
    const migration = await convert("external-secrets", [store as object, external]);
    const [target] = targetsOf(specsOf(migration));
    assert.deepEqual(
      [migration.lost, target?.["fields"]],
      [[], [{ path: "data", from: { sources: ["defaults", "login"], onCollision: "LaterWins" } }]],
    );
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
    assert.deepEqual(manifestsOf(specsOf(migration)), [{}]);
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
