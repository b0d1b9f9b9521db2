/** A kind whose versions come and go: what was written by one of them is still the binding's, and is released. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
let kinds = 0;

/** A kind of a group of its own, served as v1alpha1 alone, with one object, and a binding that wrote it. */
async function written(): Promise<{ team: TestNamespace; group: string; value: string; crd: string }> {
  const group = `versions-${++kinds}.example.com`;
  const rule = { apiGroups: [group], resources: ["items"], verbs: ["get", "list", "watch", "patch"] };
  const team = await createNamespace({ rules: [{ apiGroups: [""], resources: ["secrets"], verbs: rule.verbs }, rule] });
  const crd = `${CRDS}/items.${group}`;
  await team.api.create(CRDS, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `items.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind: "Item", listKind: "ItemList", plural: "items", singular: "item" },
      versions: [version("v1alpha1", { storage: true })],
    },
  });
  const object = { apiVersion: `${group}/v1alpha1`, kind: "Item", metadata: { name: "item" }, spec: { kept: "x" } };
  await eventually(() => team.api.create(team.path(`${group}/v1alpha1`, "items"), object));
  const value = secretText("token");
  await team.secret("bucket", { token: value });
  await team.bind("item", spec(`${group}/v1alpha1`));
  await team.until("item", "Synced", 30_000);
  assert.deepEqual((await team.api.get(`${team.path(`${group}/v1alpha1`, "items")}/item`)).spec, {
    kept: "x",
    token: value,
  });
  return { team, group, value, crd };
}

function version(name: string, { storage = false, served = true } = {}): object {
  const properties = { kept: { type: "string" }, token: { type: "string" } };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties } } } };
  return { name, served, storage, schema };
}

const spec = (apiVersion: string) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [
    {
      apiVersion,
      kind: "Item",
      name: "item",
      onRelease: "Remove",
      fields: [{ path: "spec.token", from: { source: "bucket", key: "token" } }],
    },
  ],
});

/** Moves the kind on to v1: v1alpha1 is served no more. */
async function moveOn({ team, group, crd }: { team: TestNamespace; group: string; crd: string }): Promise<string> {
  await team.api.merge(crd, {
    spec: { versions: [version("v1", { storage: true }), version("v1alpha1", { served: false })] },
  });
  const item = `${team.path(`${group}/v1`, "items")}/item`;
  await eventually(async () => {
    assert.ok(await team.api.find(item));
    assert.equal(await team.api.find(`${team.path(`${group}/v1alpha1`, "items")}/item`), undefined);
  });
  return item;
}

describe("a kind that is served in another version since", () => {
  it("is released by that one when the binding goes", async () => {
    const kind = await written();
    const item = await moveOn(kind);
    await kind.team.unbind("item", 30_000);
    assert.deepEqual((await kind.team.api.get(item)).spec, { kept: "x" });
  });

  it("is one object with what was written before: the record goes on when the binding moves on too", async () => {
    const kind = await written();
    const item = await moveOn(kind);
    const rotated = secretText("rotated");
    await kind.team.secret("bucket", { token: rotated });
    await kind.team.rebind("item", spec(`${kind.group}/v1`));
    const { status } = await kind.team.until("item", "Synced", 30_000);
    assert.equal(status.targets.length, 1);
    assert.deepEqual((await kind.team.api.get(item)).spec, { kept: "x", token: rotated });
    await kind.team.unbind("item");
    assert.deepEqual((await kind.team.api.get(item)).spec, { kept: "x" });
  });
});
