/** A controller in a dry run: everything but its writes is as without one. */
import assert from "node:assert/strict";
import { DryRun } from "../../../src/manager/dry-run.ts";
import { createLog } from "../../../src/observability/log.ts";
import { WorkQueue } from "../../../src/workqueue/work-queue.ts";

const CREDENTIALS = { server: new URL("http://127.0.0.1:1"), tls: {}, headers: async () => ({}) };

describe("a controller in a dry run", () => {
  it("shows its present state in /debug", async () => {
    const dryRun = new DryRun(CREDENTIALS, createLog("silent"));
    let bindings = 0;
    const controller = dryRun.controller({
      name: "a",
      queue: new WorkQueue({ concurrency: 1, backoffMs: { first: 1, most: 1 } }),
      get debugState() {
        return { bindings };
      },
      reconcile: async () => ({ retry: "never" }),
    });
    bindings = 2;
    assert.deepEqual(controller.debugState, { bindings: 2 });
    await dryRun.transport.close();
  });
});
