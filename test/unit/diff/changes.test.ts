/** The changes of an object: their paths, the patch, and that values stay hidden. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { SecretValue } from "../../../src/apimachinery/secret-value.ts";
import { changeOf } from "../../../src/diff/changes.ts";
import { opened } from "../../../src/render/rendering.ts";

const named = { apiVersion: "v1", kind: "ConfigMap", namespace: "a", name: "b" };
const object = (fields: object, metadata: object = {}): SecretValue<KubeObject> =>
  new SecretValue({
    ...named,
    metadata: { name: "b", uid: "1", resourceVersion: "7", ...metadata },
    ...fields,
  } as never);

describe("the change of an object", () => {
  it("names each changed field, and ignores what the API server sets", () => {
    const before = object({ data: { "a.b": "1", list: [{ x: 1 }] }, status: { a: 1 } });
    const after = object(
      { data: { list: [{ x: 2 }], new: "3" }, status: { a: 2 } },
      { resourceVersion: "8", managedFields: [{}] },
    );
    const { change, fields } = changeOf(named, [{ before, after }]);
    assert.equal(change, "update");
    assert.deepEqual(
      fields.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
      [
        { path: "data.list[0].x", change: "changed" },
        { path: "data.new", change: "added" },
        { path: 'data["a.b"]', change: "removed" },
      ],
    );
  });

  it("combines the dry runs of one object, each of which begins with the object in the cluster", () => {
    const before = object({ data: { a: "1", b: "2" } });
    const { patch } = changeOf(named, [
      { before, after: object({ data: { b: "2" } }) },
      { before, after: object({ data: { a: "1", b: "3" } }) },
    ]);
    assert.deepEqual(
      opened(patch, true).toSorted((a, b) => (a.path < b.path ? -1 : 1)),
      [
        { op: "remove", path: "/data/a" },
        { op: "replace", path: "/data/b", value: "3" },
      ],
    );
  });

  it("is a creation, a deletion, or none", () => {
    const it = object({ data: {} });
    assert.equal(changeOf(named, [{ before: undefined, after: it }]).change, "create");
    assert.equal(changeOf(named, [{ before: it, after: undefined }]).change, "delete");
    assert.equal(changeOf(named, [{ before: it, after: it }]).change, "none");
    assert.equal(changeOf(named, []).change, "none");
  });

  it("hides values unless they are requested", () => {
    const { patch } = changeOf(named, [{ before: object({}), after: object({ data: { n: 9007199254740993n } }) }]);
    assert.deepEqual(opened(patch, false), [{ op: "add", path: "/data", value: "(hidden)" }]);
    assert.doesNotMatch(JSON.stringify(patch), /9007199254740993/);
  });

  it("has integers of 64 bits as exact numbers, beside texts that look like them", () => {
    const before = object({ data: { n: 9007199254740993n, same: 9007199254740993n, text: "9007199254740993" } });
    const data = { n: 9007199254740992n, same: 9007199254740993n, text: 9007199254740993n };
    const nul = { a: "\u00009007199254740993", b: ["\u0000\u0000"] };
    const { patch } = changeOf(named, [{ before, after: object({ data, nul }) }]);
    assert.deepEqual(
      opened(patch, true).toSorted((a, b) => (a.path < b.path ? -1 : 1)),
      [
        { op: "replace", path: "/data/n", value: 9007199254740992n },
        { op: "replace", path: "/data/text", value: 9007199254740993n },
        { op: "add", path: "/nul", value: nul },
      ],
    );
    const created = changeOf(named, [{ before: undefined, after: object({ data }) }]);
    assert.deepEqual(opened(created.patch, true)[0]?.value, { ...named, metadata: { name: "b" }, data } as never);
  });
});
