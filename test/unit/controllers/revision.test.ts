/** The revision of a written object, by which Inlay notices that it would write the same again. */
import assert from "node:assert/strict";
import { revisionOf } from "../../../src/controllers/generated-bindings.ts";

describe("the revision of a written object", () => {
  it("is the same for any order of its keys, and short for any size", () => {
    const list = [{ type: "Ready", status: "True" }, 2n ** 60n];
    const other = [{ status: "True", type: "Ready" }, 2n ** 60n];
    assert.equal(revisionOf({ a: { b: 1, c: list } }), revisionOf({ a: { c: other, b: 1 } }));
    assert.notEqual(revisionOf({ a: [1, 2] }), revisionOf({ a: [2, 1] }));
    assert.equal(revisionOf({ a: "x".repeat(100_000) }).length, revisionOf({}).length);
  });
});
