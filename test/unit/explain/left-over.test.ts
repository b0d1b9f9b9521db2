/** What a binding that no longer exists left in an object, and the patch that removes no more than that. */
import assert from "node:assert/strict";
import jsonPatch from "fast-json-patch";
import type { JsonObject } from "../../../src/apimachinery/objects.ts";
import { leftOver } from "../../../src/explain/object.ts";
import { byKeys, entry, liveObject, OURS, shape } from "../apply/managed.ts";

const left = (content: object, entries: ReturnType<typeof entry>[]) => {
  const live = liveObject(content as JsonObject, entries);
  const found = leftOver(live, OURS, shape({ "spec.env": byKeys("name") }));
  const patched = jsonPatch.applyPatch(structuredClone(live), structuredClone(found.patch) as never[], true);
  return { ...found, spec: patched.newDocument["spec"] };
};

describe("what a deleted binding left in an object", () => {
  it("is removed, except for values that others own too, and lists that are one value", () => {
    const entries = [
      entry(OURS, ["spec.a.b", "spec.shared", "spec.list"]),
      entry("kubectl", ["spec.shared", "spec.c"]),
    ];
    const spec = { a: { b: "x" }, shared: "x", list: ["x", "y"], c: "x" };
    const { spec: after, patch, ...found } = left({ spec }, entries);
    assert.deepEqual(after, { a: {}, shared: "x", list: ["x", "y"], c: "x" });
    assert.deepEqual(patch[0], { op: "test", path: "/metadata/uid", value: "uid-1" });
    const expected = {
      shared: [{ path: "spec.shared", managers: ["kubectl"] }],
      whole: ["spec.list"],
      required: [],
      created: false,
    };
    assert.deepEqual(found, { ...expected, paths: ["spec.a.b", "spec.shared", "spec.list"] });
  });

  it("in an element of a list is removed in the version that was read, with the element if the binding created it", () => {
    const named = (name: string, value: string) => ({
      [`k:${JSON.stringify({ name })}`]: { ".": {}, "f:name": {}, [value]: {} },
    });
    const env = [
      { name: "first", value: "x" },
      { name: "ours", value: "x" },
    ];
    const of = (manager: string, element: object) => ({
      ...entry(manager, []),
      fieldsV1: { "f:spec": { "f:env": element } } as JsonObject,
    });
    const entries = [of(OURS, named("ours", "f:value")), of("kubectl", named("first", "f:value"))];
    const { spec, patch, paths } = left({ spec: { env } }, entries);
    assert.deepEqual(spec, { env: [{ name: "first", value: "x" }] });
    assert.deepEqual(patch[0], { op: "test", path: "/metadata/resourceVersion", value: "7" });
    assert.deepEqual(paths, ["spec.env[name=ours].value"]);
  });

  it("is the object itself, if managedFields show that the binding set the mark of a created object", () => {
    const label = 'metadata.labels["inlay.dev/created-by"]';
    const data = { data: { key: "x" } };
    const created = left(data, [entry(OURS, [label, "data.key"])]);
    assert.deepEqual([created.created, created.paths], [true, ["data.key"]]);
    assert.equal(left(data, [entry("kubectl", [label]), entry(OURS, ["data.key"])]).created, false);
  });
});
