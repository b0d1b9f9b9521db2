/** Shows the release of a value whose field manager the API server no longer knows, or whose object has to stay. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, type Kind, mayWrite, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { accessKeyFrom, createNamespaceWithNest, nest, nestIn } from "../controller/released.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { Versioned } from "../controller/versioned.ts";

const text = { type: "string" };
const nestPath = (team: TestNamespace) => objectPath(nest, team.namespace, "nest");
const managersOf = async (team: TestNamespace, path: string) => {
  const { metadata } = await team.api.get(path);
  return (metadata.managedFields ?? []).map(({ manager }: { manager: string }) => manager);
};

describe("a deleted binding with onRelease: Remove, whose field manager is missing in the target", () => {
  it("removes what it wrote, and no more", async () => {
    const team = await createNamespaceWithNest({ a: { other: "theirs" } });
    await team.api.merge(nestPath(team), { metadata: { managedFields: [{}] } });
    await team.unbind("nest");
    assert.deepEqual(await nestIn(team), { a: { other: "theirs" } });
  });

  it("also removes it after it has applied it again, while the API server assigns all fields to before-first-apply", async () => {
    const team = await createNamespaceWithNest({ a: { other: "theirs" } });
    await team.api.merge(nestPath(team), { metadata: { managedFields: [{}] } });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await eventually(async () => assert.ok((await managersOf(team, nestPath(team))).includes("before-first-apply")));
    await team.until("nest", "Synced");
    await team.unbind("nest");
    assert.deepEqual(await nestIn(team), { a: { other: "theirs" } });
  });

  it("also removes it after a write in another version has cleared all field managers", async () => {
    const v1 = { name: "v1", spec: { token: text } };
    const kind = await Versioned.install([v1]);
    await kind.make("main", {}, "v1");
    await kind.bind("main", { onRelease: "Remove" });
    await kind.team.until("main", "Synced");
    await kind.become([v1, { name: "v1beta2", spec: { token: text, b: text } }]);
    await kind.team.api.merge(kind.path("v1beta2", "main"), { spec: { b: "mine" } });
    assert.ok(
      !(await managersOf(kind.team, kind.path("v1beta2", "main"))).includes(`inlay/${kind.team.namespace}/main`),
    );
    await kind.team.unbind("main");
    assert.deepEqual((await kind.get("main")).spec, { b: "mine" });
  });
});

/** Requires an object when it has a size. */
const holder: Kind = {
  group: "release.example.com",
  kind: "Holder",
  plural: "holders",
  spec: {
    type: "object",
    properties: { size: text, auth: { type: "object", properties: { user: text, key: text } } },
    "x-kubernetes-validations": [{ rule: "!has(self.size) || has(self.auth)" }],
  },
};

describe("a deleted binding with onRelease: Remove for all values of an object that a rule requires", () => {
  it("removes the values, and keeps the empty object", async () => {
    const team = await createNamespace();
    await team.grant([mayWrite(holder)], { role: "holder" });
    await installKind(team.api, holder);
    await createObject(team.api, holder, "main", {}, team.namespace);
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const fields = ["user", "key"].map((name) => ({ path: `spec.auth.${name}`, ...accessKeyFrom }));
    const target = { apiVersion: apiVersionOf(holder), kind: holder.kind, name: "main", onRelease: "Remove", fields };
    await team.bind("main", { sources: [{ secret: { name: "bucket" } }], targets: [target] });
    await team.until("main", "Synced");
    const path = objectPath(holder, team.namespace, "main");
    await team.api.merge(path, { spec: { size: "1Gi" } });
    await team.unbind("main");
    assert.deepEqual((await team.api.get(path)).spec, { size: "1Gi", auth: {} });
  });
});
