/** Annotations of tools on objects of any kind: patches of the patch-operator, and Reloader's. */
import assert from "node:assert/strict";
import { migrate } from "../../../src/migrate/migration.ts";
import { TOOLS } from "../../../src/migrate/tools.ts";
import { convert, specsOf } from "./convert.ts";

describe("a patch of the patch-operator in an annotation", () => {
  const issuer = (patch: string, type = "application/merge-patch+json") => ({
    apiVersion: "cert-manager.io/v1",
    kind: "Issuer",
    metadata: {
      name: "letsencrypt",
      namespace: "shop",
      annotations: { "redhat-cop.redhat.io/patch": patch, "redhat-cop.redhat.io/patch-type": type },
    },
    spec: { acme: { server: "https://acme-v02.api.letsencrypt.org/directory" } },
  });
  const KEY = '{{ (lookup "v1" "Secret" .metadata.namespace "dns").data.accessKeyID | b64dec }}';

  it("becomes a binding that reads the objects that it looks up, and writes the object once", async () => {
    const patch = `spec:\n  vault:\n    server: ${KEY}\n    path: "{{ .metadata.name }}/{{ (lookup "v1" "ConfigMap" "dns" "zone").data.zone }}"\n`;
    const migration = await convert("patch-operator", [issuer(patch)]);
    assert.deepEqual(migration.lost, []);
    assert.deepEqual(specsOf(migration), [
      {
        sources: [
          { name: "dns", secret: { name: "dns" } },
          { name: "zone", configMap: { name: "zone", namespace: "dns" } },
        ],
        targets: [
          {
            apiVersion: "cert-manager.io/v1",
            kind: "Issuer",
            name: "letsencrypt",
            mode: "Once",
            fields: [
              { path: "spec.vault.server", from: { source: "dns", key: "accessKeyID" }, as: "yaml" },
              { path: "spec.vault.path", template: "letsencrypt/{{zone.zone}}" },
            ],
          },
        ],
      },
    ]);
    assert.deepEqual(specsOf(migration, "SecretGrant"), [
      { from: [{ namespace: "shop" }], to: [{ kind: "ConfigMap", name: "zone" }] },
    ]);
  });

  it("is reported if it can't be converted, or looks up nothing", async () => {
    for (const patch of [
      "spec:\n  email: ops@example.com\n",
      'spec:\n  email: {{ (lookup "v1" "Secret" "dns" "").items }}\n',
      'spec:\n  email: {{ (lookup "v1" "Secret" "dns" .spec.name).data.a }}\n',
      'spec:\n  email: {{ (lookup "example.com/v1" "Zone" "dns" "zone").spec.email }}\n',
      "spec:\n  email: {{ .constructor }}\n",
    ]) {
      const { converted, lost } = await convert("patch-operator", [issuer(patch)]);
      assert.deepEqual([converted, lost.length > 0], [[], true], patch);
    }
    const { lost } = await convert("patch-operator", [issuer(`spec:\n  email: ${KEY}\n`, "application/other")]);
    assert.equal(lost.length, 1);
  });
});

describe("Reloader's annotations", () => {
  const deployment = (own: object, pods: object = {}) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "shop", annotations: own },
    spec: { template: { metadata: { annotations: pods } } },
  });

  it("need no conversion: those that Inlay reads are named", async () => {
    const migration = await convert("reloader", [
      deployment({ "reloader.stakater.com/auto": "true" }, { "secret.reloader.stakater.com/reload": "login" }),
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "login", namespace: "shop", annotations: { "reloader.stakater.com/match": "true" } },
      },
    ]);
    const { converted, lost, remarks } = migration;
    assert.deepEqual([converted, lost, remarks.length], [[], [], 3]);
    assert.match(remarks.join("\n"), /shop\/web: .*auto: true.*\n.*shop\/login: .*match: true/);
  });

  it("are reported where Inlay does not use them", async () => {
    for (const object of [
      deployment({ "reloader.stakater.com/restart-window": "01:00-03:00" }),
      deployment({}, { "reloader.stakater.com/auto": "yes" }),
      { ...deployment({ "reloader.stakater.com/auto": "true" }), kind: "DeploymentConfig" },
      { ...deployment({ "reloader.stakater.com/auto": "true" }), apiVersion: "v1", kind: "ConfigMap" },
    ])
      assert.equal((await convert("reloader", [object])).lost.length, 1, JSON.stringify(object));
  });
});

describe("a conversion for all tools", () => {
  it("converts the objects of each, also an object of two", async () => {
    const tools = await Promise.all(Object.values(TOOLS).map((load) => load()));
    const object = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: {
        name: "login",
        namespace: "platform",
        annotations: {
          "replicator.v1.mittwald.de/replicate-to": "shop",
          "reflector.v1.k8s.emberstack.com/reflection-allowed": "true",
          "reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true",
        },
      },
    };
    const files = [object, { apiVersion: "v1", kind: "Service", metadata: { name: "web" } }].map((each) => ({
      name: "a",
      text: JSON.stringify(each),
    }));
    const { converted, others, lost } = migrate(tools, files, "default");
    const names = converted.map(({ object: { metadata } }) => (metadata as { name: string }).name);
    assert.deepEqual([names, others, lost], [["login", "login-2"], 1, []]);
  });
});
