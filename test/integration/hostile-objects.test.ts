/**
 * Objects and schemas that are made to block the controller. Each binding with one reports it, and all others are
 * reconciled.
 */
import assert from "node:assert/strict";
import { createDeep, deepText, heapRules, heaps } from "../controller/deep.ts";
import { eventually } from "../controller/eventually.ts";
import { apiVersionOf, createObject, installKind, objectPath } from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const heapTarget = (fields: object[], more: object = {}) => ({
  apiVersion: apiVersionOf(heaps),
  kind: heaps.kind,
  name: "heap",
  fields,
  ...more,
});
const bucket = [{ secret: { name: "bucket" } }];
const key = { from: { source: "bucket", key: "accessKeyID" } };
/** A path through a list, which is written as a whole with its other elements. */
const listed = { path: "spec.list[0].text", ...key };
const list = [{ text: "none" }];

async function createTeam(): Promise<{ team: TestNamespace; value: string }> {
  const team = await createNamespace({ rules: heapRules });
  await installKind(team.api, heaps);
  const value = secretText("access");
  await team.secret("bucket", { accessKeyID: value });
  return { team, value };
}

const heapOf = async (team: TestNamespace) => (await team.api.get(objectPath(heaps, team.namespace, "heap"))).spec;

describe("a schema with a short pattern that compiles to a large program", () => {
  it("does not block the controller on a long text, and other errors of the target are reported", async () => {
    const { team } = await createTeam();
    await createObject(team.api, heaps, "heap", {}, team.namespace);
    await team.secret("long", { text: "x".repeat(60_000), address: `${"0".repeat(60_000)}:` });
    const fields = [
      { path: "spec.address", from: { source: "long", key: "address" } },
      { path: "spec.slow", from: { source: "long", key: "text" } },
      { path: "spec.text.none", ...key },
    ];
    await team.bind("slow", { sources: [...bucket, { secret: { name: "long" } }], targets: [heapTarget(fields)] });
    await team.until("slow", "TypeMismatch");
    assert.equal(await team.controller.page("/livez"), "ok\n");
  });

  it("is left to the API server, which accepts what matches and refuses what does not", async () => {
    const { team } = await createTeam();
    await createObject(team.api, heaps, "heap", {}, team.namespace);
    await team.secret("short", { text: "no" });
    const targets = [heapTarget([{ path: "spec.slow", from: { source: "short", key: "text" } }])];
    await team.bind("slow", { sources: [{ secret: { name: "short" } }], targets });
    await team.until("slow", "Rejected");
    await team.secret("short", { text: "say" });
    await team.until("slow", "Synced");
    assert.equal((await heapOf(team)).slow, "say");
  });
});

describe("an object that nests thousands of levels deep", () => {
  it("is not written as a target, and is written as soon as it is flat", async () => {
    const { team, value } = await createTeam();
    await createDeep(team.api, team.namespace, "heap", { list });
    await team.bind("deep", { sources: bucket, targets: [heapTarget([listed])] });
    const { status } = await team.until("deep", "TooDeep");
    assert.match(status.targets[0].message, /Heap .*heap/);
    await team.api.merge(objectPath(heaps, team.namespace, "heap"), { spec: { deep: null } });
    await team.until("deep", "Synced");
    assert.equal((await heapOf(team)).list[0].text, value);
  });

  it("is not read as a source", async () => {
    const { team } = await createTeam();
    await createDeep(team.api, team.namespace, "heap");
    await createObject(team.api, heaps, "other", {}, team.namespace);
    const object = { apiVersion: apiVersionOf(heaps), resource: heaps.plural, name: "heap", scope: "Namespaced" };
    const fields = [{ path: "spec.copy", from: { source: "heap", fieldPath: "spec.deep" } }];
    await team.bind("deep", { sources: [{ object }], targets: [heapTarget(fields, { name: "other" })] });
    await team.until("deep", "TooDeep");
  });

  it("is not created as a manifest", async () => {
    const { team } = await createTeam();
    const fields = [{ path: "spec.text", ...key }];
    const target = JSON.stringify(heapTarget(fields, { create: { manifest: { spec: { deep: 0 } } } }));
    const spec = `{"sources":${JSON.stringify(bucket)},"targets":[${target.replace('"deep":0', `"deep":${deepText(3_000)}`)}]}`;
    const kind = '"apiVersion":"inlay.dev/v1alpha1","kind":"SecretBinding"';
    const bindings = team.path("inlay.dev/v1alpha1", "secretbindings");
    await team.api.create(bindings, `{${kind},"metadata":{"name":"deep"},"spec":${spec}}`);
    await team.until("deep", "InvalidBinding");
    await team.unbind("deep");
  });

  it("does not block others of its kind: each object that a selector finds has its own result", async () => {
    const { team, value } = await createTeam();
    await createObject(team.api, heaps, "heap", { list }, team.namespace);
    await createDeep(team.api, team.namespace, "deep", { list });
    const { name: _, ...target } = heapTarget([listed]);
    await team.bind("all", { sources: bucket, targets: [{ ...target, selector: { names: ["*e*"] } }] });
    await team.until("all", "TooDeep");
    await eventually(async () => assert.equal((await team.binding("all")).status.synced, "1/2"));
    assert.equal((await heapOf(team)).list[0].text, value);
  });
});
