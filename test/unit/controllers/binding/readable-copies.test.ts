/** A warning about a readable copy is recorded when the copy begins, and not again. */
import assert from "node:assert/strict";
import type { TargetStatus } from "../../../../src/api/binding.ts";
import { newlyReadable } from "../../../../src/controllers/binding/conditions.ts";
import { bindingOf, recordOf } from "../../objects.ts";

const record = (more: Partial<TargetStatus> = {}) => recordOf({ namespace: "team", paths: ["spec.a"], ...more });
const readable = { paths: ["spec.a", "spec.b"], note: "said" };
const said = (before: TargetStatus[], ...now: TargetStatus[]) => {
  const binding = bindingOf({ metadata: { namespace: "team" }, status: { targets: before } });
  const outcomes = now.map((each) => ({ record: each, readable }));
  return [...newlyReadable(binding, outcomes)];
};

describe("the warning about a readable copy", () => {
  it("is recorded when the copy is first written, once for all objects of a kind", () => {
    assert.deepEqual(said([], record(), record({ name: "other" })), ["said"]);
    assert.deepEqual(said([record()], record({ paths: ["spec.a", "spec.b"] })), ["said"]);
  });

  it("is not repeated for a new value, another object, a recreated object or another API version", () => {
    assert.deepEqual(said([record()], record()), []);
    assert.deepEqual(
      said([record()], record({ name: "other" }), record({ uid: "new", apiVersion: "goharbor.io/v2" })),
      [],
    );
  });

  it("is recorded if a copy in another namespace is added to one in the binding's own namespace", () => {
    assert.deepEqual(said([record()], record({ namespace: "other" })), ["said"]);
  });

  it("is not recorded if nothing is written, or the copy is not readable", () => {
    assert.deepEqual(said([], record({ paths: [] }), record({ paths: ["spec.c"] })), []);
    const binding = bindingOf({ metadata: { namespace: "team" } });
    assert.deepEqual([...newlyReadable(binding, [{ record: record() }])], []);
  });
});
