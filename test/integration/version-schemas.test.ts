/** Shows a kind whose versions have different schemas: the version that the binding names counts, and the stored version. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { Versioned } from "../controller/versioned.ts";

const text = { type: "string" };
const listOf = (more: object) => ({
  list: { type: "array", items: { type: "object", properties: { name: text, ...more } } },
});
const from = { source: "bucket", key: "token" };
const own = { other: text, token: text };

describe("a kind whose stored version lacks a field", () => {
  it("has no value written into that field, and no object created with it, until the stored version has the field", async () => {
    const v1 = { name: "v1", spec: { ...own, ...listOf({ token: text }) } };
    const kind = await Versioned.install([v1, { name: "v1beta2", spec: { other: text, ...listOf({}) } }]);
    await kind.make("main", { list: [{ name: "db" }] });
    const { metadata } = await kind.get("main");
    await kind.bind("plain", { name: "main" });
    await kind.bind("element", { name: "main", fields: [{ path: "spec.list[name=db].token", from }] });
    await kind.bind("made", { create: { manifest: { spec: { other: "x" } } } });
    for (const name of ["plain", "element", "made"]) {
      const { status } = await kind.team.until(name, "VersionDropsFields");
      const { message } = status.conditions[0];
      assert.match(message, /token: .*\/v1beta2\b.*or add the fields to the schema of \S+\/v1beta2 in the CRD$/);
    }
    assert.equal((await kind.get("main")).metadata.resourceVersion, metadata.resourceVersion);
    assert.equal(await kind.team.api.find(kind.path("v1", "made")), undefined);
    await kind.become([v1, { ...v1, name: "v1beta2" }]);
    await kind.make("probe", {});
    await eventually(async () => {
      const { spec } = await kind.team.api.merge(kind.path("v1beta2", "probe"), { spec: { token: "x" } });
      assert.equal(spec.token, "x");
    });
    await kind.rotate();
    for (const name of ["plain", "element", "made"]) await kind.team.until(name, "Synced");
    const token = kind.value;
    await eventually(async () => {
      assert.deepEqual((await kind.get("main")).spec, { list: [{ name: "db", token }], token });
      assert.deepEqual((await kind.get("made")).spec, { other: "x", token });
    });
  });
});

describe("a kind with another version that loses no field", () => {
  it("accepts values of the type that the named version has, and no others", async () => {
    const kind = await Versioned.install([
      { name: "v1", spec: { ...own, port: { type: "integer" }, mode: { ...text, enum: ["a", "b"] } } },
      { name: "v1beta2", spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
    ]);
    await kind.make("main", { other: "x" });
    await kind.team.secret("bucket", { token: "5432" });
    await kind.bind("port", { name: "main", fields: [{ path: "spec.port", from }] });
    await kind.bind("mode", { name: "main", fields: [{ path: "spec.mode", from }] });
    await kind.team.until("port", "Synced");
    await kind.team.until("mode", "InvalidValue");
    assert.deepEqual((await kind.get("main")).spec, { other: "x", port: 5432 });
  });
});

describe("a field that a user removes by a write in a version that lacks it", () => {
  it("is restored, although the generation of the object did not change", async () => {
    const kind = await Versioned.install([
      { name: "v1", spec: listOf({}), hasStatus: true },
      { name: "v1beta2", spec: listOf({ token: text }), hasStatus: true },
    ]);
    await kind.make("main", { list: [{ name: "db" }] });
    const apiVersion = `${kind.group}/v1beta2`;
    await kind.bind("main", { apiVersion, fields: [{ path: "spec.list[name=db].token", from }] });
    await kind.team.until("main", "Synced");
    const before = await kind.get("main");
    await kind.team.api.merge(kind.path("v1", "main"), { metadata: { labels: { a: "b" } } });
    await eventually(async () => {
      const { metadata, spec } = await kind.get("main");
      assert.equal(metadata.labels.a, "b");
      assert.notEqual(metadata.resourceVersion, before.metadata.resourceVersion);
      assert.deepEqual(spec.list, [{ name: "db", token: kind.value }]);
    });
  });
});
