/** Whether an object is ready. */
import assert from "node:assert/strict";
import { readinessOf } from "../../../src/controllers/readiness.ts";

const condition = (type: string, status: string) => ({ type, status, reason: "Synced" });

describe("the readiness of objects", () => {
  it("is that of the condition Ready", () => {
    const conditions = [condition("RolledOut", "False"), condition("Ready", "True")];
    assert.equal(readinessOf({ status: { conditions } })?.status, "True");
    assert.equal(readinessOf({}), undefined);
  });
});
