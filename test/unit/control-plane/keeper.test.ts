/** The signals that the keeper sends to the programs of a control plane. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { Keeper, type Program } from "../../control-plane/keeper.ts";

/** The threads share the cores, so some wait before they can stop. */
const BUSY_THREADS = 16;
const BUSY = `const { Worker } = require("node:worker_threads");
for (let n = 0; n < ${BUSY_THREADS}; n++) new Worker("for (;;);", { eval: true });`;

describe("a program under the keeper", function () {
  this.timeout("30s");
  let keeper: Keeper;
  let program: Program;

  before(async () => {
    keeper = await Keeper.start();
    const isReady = async () => statesOf(program).filter((state) => state.startsWith("R")).length >= BUSY_THREADS;
    const running = keeper.run({ name: "busy", file: process.execPath, args: ["-e", BUSY], isReady });
    program = keeper.programs.get("busy") as Program;
    await running;
  });
  after(() => keeper.stop());

  it("has stopped with all of its threads when the keeper answers a SIGSTOP", async () => {
    const states: string[] = [];
    for (let turn = 0; turn < 10; turn++) {
      await program.kill("SIGSTOP");
      states.push(...statesOf(program));
      await program.kill("SIGCONT");
    }
    assert.deepEqual([...new Set(states)], ["T (stopped)"]);
  });
});

/** The state of each thread, from Linux. */
function statesOf({ pid }: Program): string[] {
  const threads = `/proc/${pid}/task`;
  const statusOf = (thread: string) => readFileSync(`${threads}/${thread}/status`, "utf8");
  return readdirSync(threads).map((thread) => /^State:\t(.*)$/m.exec(statusOf(thread))?.[1] ?? "");
}
