/** The property of a reference of External Secrets: the name of a key, or a path in JSON. */
import assert from "node:assert/strict";
import { convert, specsOf } from "./convert.ts";

const PROVIDERS = {
  kubernetes: { kubernetes: { remoteNamespace: "shop" } },
  vault: {
    vault: {
      server: "https://vault.example.com",
      path: "kv",
      auth: { appRole: { path: "approle", roleId: "a", secretRef: { name: "id", key: "id" } } },
    },
  },
};

/** The field of the binding without its path, or what is reported. */
async function read(property: string, provider: keyof typeof PROVIDERS, decodingStrategy?: string): Promise<unknown> {
  const migration = await convert("external-secrets", [
    {
      apiVersion: "external-secrets.io/v1",
      kind: "SecretStore",
      metadata: { name: "store", namespace: "shop" },
      spec: { provider: PROVIDERS[provider] },
    },
    {
      apiVersion: "external-secrets.io/v1",
      kind: "ExternalSecret",
      metadata: { name: "team", namespace: "shop" },
      spec: {
        secretStoreRef: { name: "store" },
        data: [{ secretKey: "a", remoteRef: { key: "team", property, decodingStrategy } }],
      },
    },
  ]);
  const fields = specsOf(migration).flatMap(({ targets }) =>
    (targets as { fields: Record<string, unknown>[] }[]).flatMap((target) => target.fields),
  );
  const [{ path: _, ...field } = {}] = fields;
  assert.deepEqual([migration.lost.length, fields.length], migration.lost.length === 0 ? [0, 1] : [1, 0], property);
  return fields.length === 0 ? migration.lost[0]?.message.split(":")[0] : field;
}

const keyOf = (key: string) => ({ from: { source: "team", key } });

describe("the property of a remoteRef", () => {
  it("is the name of a key of Vault, and otherwise a path in JSON", async () => {
    const cases: Record<string, object> = {
      token: keyOf("token"),
      ".dockerconfigjson": keyOf(".dockerconfigjson"),
      "name\\.first": keyOf("name.first"),
      "friends.1.first": { template: '{{default team.[friends.1.first] (pointer team.friends "/1/first")}}' },
      "a\\.b.c/d": { template: '{{pointer team.[a.b] "/c~1d"}}' },
    };
    for (const [property, field] of Object.entries(cases))
      assert.deepEqual(await read(property, "vault"), field, property);
    assert.deepEqual(await read("a.b", "vault", "Base64"), {
      template: '{{base64decode (default team.[a.b] (pointer team.a "/b"))}}',
    });
  });

  it("is the name of a key of a Secret, which holds no JSON for External Secrets", async () => {
    assert.deepEqual(await read("tls.crt", "kubernetes"), keyOf("tls.crt"));
    assert.deepEqual(await read("tls\\.crt", "kubernetes"), keyOf("tls.crt"));
  });

  it("is reported if it is a query, a wildcard or a modifier", async () => {
    const place = "spec.data[0].remoteRef.property";
    for (const property of [
      "friends.#.first",
      "friends.#(age>40)",
      "a.b*",
      "a.?",
      "a|b",
      "a.@reverse",
      "{a,b}",
      'a."b"',
    ])
      assert.equal(await read(property, "vault"), place, property);
    assert.equal(await read("a\\.b.c", "kubernetes"), place);
  });
});
