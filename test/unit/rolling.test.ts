/** What a rollout notes, when it asks again, and what it shares, with the API server made up. */
import assert from "node:assert/strict";
import { MadeUp } from "./rolling.ts";

describe("the rollout of a binding", () => {
  it("leaves in status what it noted before it restarted something", async () => {
    const rollout = new MadeUp();
    rollout.spec = { stamp: { annotation: "kubectl.kubernetes.io/restartedAt", value: "Time" } };
    await rollout.roll("a");
    await rollout.roll("b");
    assert.equal(rollout.stamped.length, 1);
    assert.equal(rollout.noted.length, 1);
    assert.deepEqual(rollout.status?.pending?.changed, rollout.stamped[0]);
  });
});
