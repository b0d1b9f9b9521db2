/** A copy or login that its owner had not permitted gets no grant, and its binding is suspended. */
import assert from "node:assert/strict";
import { readSources } from "../../../src/migrate/live-sources.ts";
import { migrate } from "../../../src/migrate/migration.ts";
import { TOOLS } from "../../../src/migrate/tools.ts";
import { convert, specsOf } from "./convert.ts";

const REPLICATOR = "replicator.v1.mittwald.de/";
const REFLECTOR = "reflector.v1.k8s.emberstack.com/";
const objectOf = (name: string, namespace: string, annotations: object, kind = "Secret") => ({
  apiVersion: "v1",
  kind,
  metadata: { name, namespace, annotations },
});
const annotated = (prefix: string, annotations: Record<string, string>) =>
  Object.fromEntries(Object.entries(annotations).map(([key, value]) => [`${prefix}${key}`, value]));
const PULL = objectOf("ca", "shop", { [`${REPLICATOR}replicate-from`]: "pki/ca" });
const MIRROR = objectOf("ca", "shop", { [`${REFLECTOR}reflects`]: "pki/ca" });

/** The binding in the namespace shop, and whether a grant lets it read. */
async function outcome(tool: string, objects: readonly object[]): Promise<[suspended: boolean, grants: unknown[]]> {
  const migration = await convert(tool, objects);
  const binding = migration.converted.find(
    ({ object }) =>
      object["kind"] === "SecretBinding" && (object["metadata"] as { namespace: string }).namespace === "shop",
  );
  assert.ok(binding !== undefined);
  const { suspend } = binding.object["spec"] as { suspend?: boolean };
  assert.equal(suspend === true, binding.notConverted.length > 0);
  return [suspend === true, specsOf(migration, "SecretGrant").flatMap(({ from }) => from as unknown[])];
}

describe("a copy that names its source", () => {
  const names = (...all: string[]) => ({ namespaceSelector: { names: all } });

  it("of the replicator needs replication-allowed and its namespace in replication-allowed-namespaces", async () => {
    const source = (annotations: Record<string, string>) => objectOf("ca", "pki", annotated(REPLICATOR, annotations));
    const of = (annotations: Record<string, string>) => outcome("replicator", [source(annotations), PULL]);
    const allowed = "replication-allowed";
    const list = "replication-allowed-namespaces";
    assert.deepEqual(await of({ [allowed]: "true", [list]: "shop,team-.*" }), [false, [names("shop", "team-*")]]);
    assert.deepEqual(await of({ [allowed]: "1", [list]: "sh.*" }), [false, [names("sh*")]]);
    assert.deepEqual(await of({ [allowed]: "true", [list]: "team-.*" }), [true, [names("team-*")]]);
    assert.deepEqual(await of({ [allowed]: "true", [list]: "sh[a-z]+" }), [true, []]);
    assert.deepEqual(await of({ [allowed]: "true" }), [true, []]);
    assert.deepEqual(await of({ [allowed]: "false", [list]: "shop" }), [true, []]);
    assert.deepEqual(await of({ [list]: "shop" }), [true, []]);
    assert.deepEqual(await of({}), [true, []]);
    assert.deepEqual(await outcome("replicator", [PULL]), [true, []]);
  });

  it("of Reflector needs reflection-allowed of each source of a chain", async () => {
    const source = (annotations: Record<string, string>) => objectOf("ca", "pki", annotated(REFLECTOR, annotations));
    const of = (annotations: Record<string, string>) => outcome("reflector", [source(annotations), MIRROR]);
    const allowed = { "reflection-allowed": "true" };
    const labels = { "reflection-allowed-namespaces-selector": "team=web" };
    const byLabels = {
      namespaceSelector: { matchExpressions: [{ key: "team", operator: "In", values: ["web"] }] },
    };
    assert.deepEqual(await of(allowed), [false, [names("*")]]);
    assert.deepEqual(await of({ ...allowed, ...labels }), [false, [byLabels]]);
    assert.deepEqual(await of({ ...allowed, "reflection-allowed-namespaces": "team-.*" }), [true, [names("team-*")]]);
    assert.deepEqual(await of({ "reflection-allowed": "false", "reflection-allowed-namespaces": "shop" }), [true, []]);
    assert.deepEqual(await of({}), [true, []]);
    assert.deepEqual(await outcome("reflector", [MIRROR]), [true, []]);
    const middle = objectOf("ca", "pki", { [`${REFLECTOR}reflects`]: "root/ca" });
    const root = objectOf("ca", "root", annotated(REFLECTOR, allowed));
    assert.deepEqual(await outcome("reflector", [root, middle, MIRROR]), [true, [names("*")]]);
  });

  it("gets a grant by the annotations of a source that is read from the cluster", async () => {
    const files = [{ name: "a", text: JSON.stringify(PULL) }];
    const tool = await (TOOLS["replicator"] ?? assert.fail())();
    const { missing } = migrate(tool, files, "default");
    assert.deepEqual(missing, [{ kind: "Secret", namespace: "pki", name: "ca" }]);
    for (const [list, grants] of [
      ["shop", [{ namespace: "shop" }]],
      ["other", []],
    ] as const) {
      const live = objectOf(
        "ca",
        "pki",
        annotated(REPLICATOR, { "replication-allowed": "true", "replication-allowed-namespaces": list }),
      );
      const { found } = await readSources(
        { get: async (_ref, take) => ({ state: "Found", it: take(live as never) }) },
        missing,
      );
      const migration = migrate(tool, files, "default", found);
      assert.deepEqual(
        specsOf(migration, "SecretGrant").flatMap(({ from }) => from),
        grants,
      );
      assert.equal(migration.lost.length, grants.length > 0 ? 0 : 1);
    }
  });
});

describe("a copy that names its source and has namespaces to copy to", () => {
  it("is only a copy, as for the tools, and a remark says so", async () => {
    const source = (prefix: string, consent: Record<string, string>) =>
      objectOf("ca", "pki", annotated(prefix, consent));
    const list = { "replication-allowed": "true", "replication-allowed-namespaces": "shop" };
    const auto = { "reflection-allowed": "true", "reflection-auto-enabled": "true" };
    for (const [tool, objects] of Object.entries({
      replicator: [
        source(REPLICATOR, list),
        objectOf("ca", "shop", annotated(REPLICATOR, { "replicate-from": "pki/ca", "replicate-to": "team-.*" })),
      ],
      reflector: [
        source(REFLECTOR, { "reflection-allowed": "true" }),
        objectOf("ca", "shop", annotated(REFLECTOR, { ...auto, reflects: "pki/ca" })),
      ],
    })) {
      const migration = await convert(tool, objects);
      assert.deepEqual([migration.lost, migration.remarks.length], [[], 1], tool);
      const targets = specsOf(migration).flatMap((spec) => spec["targets"] as object[]);
      assert.deepEqual([targets.length, targets.some((each) => "namespaceSelector" in each)], [1, false], tool);
    }
  });
});

describe("a VaultAuth of another namespace", () => {
  const auth = (name: string, allowedNamespaces?: string[]) => [
    {
      apiVersion: "secrets.hashicorp.com/v1beta1",
      kind: "VaultConnection",
      metadata: { name: "default", namespace: "operator" },
      spec: { address: "https://vault.example.com" },
    },
    {
      apiVersion: "secrets.hashicorp.com/v1beta1",
      kind: "VaultAuth",
      metadata: { name, namespace: "operator" },
      spec: {
        method: "kubernetes",
        vaultConnectionRef: "default",
        allowedNamespaces,
        kubernetes: { role: "web", serviceAccount: "inlay" },
      },
    },
  ];
  const secret = (vaultAuthRef?: string) => ({
    apiVersion: "secrets.hashicorp.com/v1beta1",
    kind: "VaultStaticSecret",
    metadata: { name: "web", namespace: "shop" },
    spec: {
      vaultAuthRef,
      type: "kv-v2",
      mount: "kv",
      path: "web",
      destination: { name: "web", create: true, transformation: { excludeRaw: true } },
    },
  });
  const of = (ref: string, allowed?: string[]) => outcome("vso", [...auth("web", allowed), secret(ref)]);

  it("is for the namespaces of allowedNamespaces, and for all only by * alone", async () => {
    assert.deepEqual(await of("operator/web", ["shop"]), [false, [{ namespace: "shop" }]]);
    assert.deepEqual(await of("operator/web", ["*"]), [false, [{ namespaceSelector: { names: ["*"] } }]]);
    assert.deepEqual(await of("operator/web", ["*", "b"]), [true, [{ namespace: "b" }]]);
    assert.deepEqual(await of("operator/web"), [true, []]);
  });

  it("is for all namespaces if it is the default one, which an object without vaultAuthRef uses", async () => {
    assert.deepEqual(await outcome("vso", [...auth("default"), secret()]), [false, [{ namespace: "shop" }]]);
    assert.deepEqual(await outcome("vso", [...auth("default"), secret("operator/default")]), [true, []]);
  });
});

describe("a ClusterSecretStore for the cluster with conditions", () => {
  it("gives no namespace a grant", async () => {
    const store = {
      apiVersion: "external-secrets.io/v1",
      kind: "ClusterSecretStore",
      metadata: { name: "store" },
      spec: { conditions: [{ namespaces: ["other"] }], provider: { kubernetes: { remoteNamespace: "pki" } } },
    };
    const secret = {
      apiVersion: "external-secrets.io/v1",
      kind: "ExternalSecret",
      metadata: { name: "ca", namespace: "shop" },
      spec: {
        secretStoreRef: { name: "store", kind: "ClusterSecretStore" },
        data: [{ secretKey: "ca", remoteRef: { key: "ca", property: "ca" } }],
      },
    };
    assert.deepEqual(await outcome("external-secrets", [store, secret]), [true, []]);
  });
});
