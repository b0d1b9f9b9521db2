/** Whether a workload is shown as our stamp left it. */
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

describe("a workload that was stamped is seen as it is since then", () => {
  it("by its generation, which its spec changes", () => {
    assert.equal(isSeen("spec.restartAt", { generation: 2, resourceVersion: "101" }), false);
    assert.equal(isSeen("spec.restartAt", { generation: 3, resourceVersion: "99" }), true);
    assert.equal(isSeen("spec.restartAt", { generation: undefined, resourceVersion: "99" }), true);
  });

  it("by what stands there or its version, where the field is none of its spec and no generation tells", () => {
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "99" }), false);
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "99" }, "before"), false);
    // It stood there already, and what was written changed nothing.
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "99" }, "now"), true);
    // Its operator has taken it away since.
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "101" }), true);
    assert.equal(isSeen(METADATA, { generation: 3, resourceVersion: "100" }, "now"), true);
  });

  it("where nobody of this process stamped it, as it is", () => {
    assert.equal(new RolloutMemory("uid").isSeen(dependentOf({ stampAt: FieldPath.parse(METADATA) })), true);
  });
});
