/** What /debug shows of the processor. */
import assert from "node:assert/strict";
import { debugState } from "../../../src/manager/manager.ts";
import { CpuScheduler } from "../../../src/workqueue/cpu-scheduler.ts";

describe("the debug state", () => {
  it("names the namespaces that used the most of the processor, and at most twenty", async () => {
    let now = 0;
    const cpu = new CpuScheduler(() => now);
    for (let n = 0; n < 30; n++)
      await cpu.run(`team-${n}`, () => {
        now += n;
      });
    const sources = { version: "1", leading: true, controllers: [], watches: [], problems: { all: new Map() }, cpu };
    const { processor } = debugState(sources) as { processor: { namespace: string; percent: number }[] };
    assert.equal(processor.length, 20);
    assert.deepEqual(
      processor.slice(0, 2).map(({ namespace }) => namespace),
      ["team-29", "team-28"],
    );
  });
});
