/** Whether a workload is shown as our stamp left it. */
import assert from "node:assert/strict";
import type { Dependent } from "../../../../src/api/rollout.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import { isSeenSince } from "../../../../src/rollout/restart/restart.ts";

const METADATA = 'metadata.annotations["restartedAt"]';
const stamped = { uid: "1", generation: 3, resourceVersion: "100", text: "now" };

function isSeen(path: string, version: object, restart?: string): boolean {
  const dependent = { stampAt: FieldPath.parse(path), version, workload: { restart } };
  return isSeenSince(dependent as unknown as Dependent, stamped);
}

describe("a workload that was stamped is seen as it is since then", () => {
  it("by its generation, which its spec changes", () => {
    assert.equal(isSeen("spec.restartAt", { generation: 2, resourceVersion: "101" }), false);
    assert.equal(isSeen("spec.restartAt", { generation: 3, resourceVersion: "99" }), true);
    assert.equal(isSeen("spec.restartAt", { resourceVersion: "99" }), true);
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
    const dependent = { stampAt: FieldPath.parse(METADATA), version: {}, workload: {} } as unknown as Dependent;
    assert.equal(isSeenSince(dependent, undefined), true);
  });
});
