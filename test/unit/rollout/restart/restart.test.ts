/** Whether the watch shows a workload at least as new as its restart. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import type { Version } from "../../../../src/apimachinery/objects.ts";
import { RolloutMemory } from "../../../../src/rollout/memory.ts";
import { dependentOf } from "../../objects.ts";

const METADATA = 'metadata.annotations["restartedAt"]';
const stamped = { uid: "1", generation: 3, resourceVersion: "100", text: "now" };

function isSeen(path: string, version: Partial<Version>, restart?: string): boolean {
  const workload = restart === undefined ? {} : { restart };
  const dependent = dependentOf({ stampAt: FieldPath.parse(path), version, workload });
  const memory = new RolloutMemory("uid");
  memory.stamped.set(dependent.version.uid, stamped);
  return memory.isSeen(dependent);
}

describe("a restarted workload is seen in its new state", () => {
  it("by its generation, which its spec changes", () => {
    assert.equal(isSeen("spec.restartAt", { generation: 2, resourceVersion: "101" }), false);
    assert.equal(isSeen("spec.restartAt", { generation: 3, resourceVersion: "99" }), true);
    assert.equal(isSeen("spec.restartAt", { generation: undefined, resourceVersion: "99" }), true);
  });

  it("by the text in the field or its version, if the field is not in its spec and no generation shows the change", () => {
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "99" }), false);
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "99" }, "before"), false);
    // The text was there already, and the write changed nothing.
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "99" }, "now"), true);
    // Its operator has removed it since.
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "101" }), true);
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "100" }, "now"), true);
  });

  it("at once if this process did not restart it", () => {
    assert.equal(new RolloutMemory("uid").isSeen(dependentOf({ stampAt: FieldPath.parse(METADATA) })), true);
  });
});
