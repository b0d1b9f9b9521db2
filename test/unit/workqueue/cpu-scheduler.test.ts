/** Long work leaves turns to everything else, and users of little time do not wait for users of much time. */
import assert from "node:assert/strict";
import { CpuScheduler } from "../../../src/workqueue/cpu-scheduler.ts";
import { fakeClock } from "../clock.ts";

describe("turns", () => {
  let now: number;
  let turns: CpuScheduler;
  let log: string[];
  beforeEach(() => {
    now = 0;
    turns = new CpuScheduler(() => now);
    log = [];
  });
  const work = (name: string, ms: number) => () => {
    now += ms;
    log.push(name);
    return name;
  };
  /** Records each turn of the event loop in which work was done, until all of it is. */
  async function whileTurning(start: () => Promise<unknown>[]): Promise<void> {
    let isDone = false;
    const turn = () => {
      if (log.at(-1) !== "|") log.push("|");
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await Promise.all(start());
    isDone = true;
  }

  it("return what the work returns, and throw what it throws", async () => {
    assert.equal(await turns.run("one", () => 1), 1);
    await assert.rejects(
      turns.run("one", () => {
        throw new Error("wrong");
      }),
      /wrong/,
    );
    assert.equal(await turns.run("one", () => 2), 2);
  });

  it("run small work at once", async () => {
    await whileTurning(() => Array.from({ length: 5 }, (_, n) => turns.run("one", work(`${n}`, 3))));
    assert.deepEqual(log.join(""), "01234");
  });

  it("leave the event loop its turn after 20 ms of work", async () => {
    await whileTurning(() => Array.from({ length: 6 }, (_, n) => turns.run("one", work(`${n}`, 10))));
    assert.deepEqual(log.join("").replace(/\|$/, ""), "01|23|45");
  });

  it("run one work per turn if each takes long", async () => {
    const all = () => Array.from({ length: 3 }, (_, n) => turns.run(`taker ${n}`, work(`${n}`, 500)));
    await whileTurning(all);
    assert.deepEqual(log.join("").replace(/\|$/, ""), "0|1|2");
  });

  it("go to the name that used the least time", async () => {
    const all = Array.from({ length: 10 }, (_, n) => turns.run("greedy", work(`g${n}`, 30)));
    await Promise.all(all.slice(0, 2));
    all.push(turns.run("modest", work("m", 1)));
    await Promise.all(all);
    assert.equal(log.indexOf("m"), 2);
  });

  describe("in the long run", () => {
    const clock = fakeClock();
    /** Lets the time pass for the turns, too. */
    const pass = async (ms: number) => {
      now += ms;
      await clock.pass(ms);
    };

    it("give one name at most a quarter of the time, and others run at once meanwhile", async () => {
      let done = 0;
      const greedy = (async () => {
        for (let n = 0; n < 20; n++) {
          await turns.run("greedy", work(`g${n}`, 100));
          done++;
        }
      })();
      await pass(0);
      assert.equal(done, 3, "what may be had at once");
      for (let time = 0; time < 40; time++) {
        await pass(100);
        await turns.run("modest", work("m", 1));
      }
      assert.ok(done >= 13 && done <= 18, `${done}, of 100 ms each, in 4 s and what the work took itself`);
      assert.equal(log.filter((name) => name === "m").length, 40);
      for (let time = 0; time < 100; time++) await pass(100);
      await greedy;
    });
  });

  it("come to every name, also after work that failed", async () => {
    const fails = Array.from({ length: 10 }, () =>
      turns.run("one", () => {
        now += 10;
        throw new Error("wrong");
      }),
    );
    const results = await Promise.allSettled([...fails, turns.run("other", work("last", 1))]);
    assert.equal(results.filter(({ status }) => status === "rejected").length, 10);
    assert.deepEqual(log, ["last"]);
  });
});
