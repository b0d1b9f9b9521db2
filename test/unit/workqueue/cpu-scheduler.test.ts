/** Long work leaves turns to everything else, and users of little time do not wait for users of much time. */
import assert from "node:assert/strict";
import { CpuScheduler } from "../../../src/workqueue/cpu-scheduler.ts";
import { fakeClock } from "../clock.ts";

describe("turns", () => {
  let now: number;
  let turns: CpuScheduler;
  let log: string[];
  let throttled: number;
  beforeEach(() => {
    now = 0;
    throttled = 0;
    const count = () => {
      throttled++;
    };
    turns = new CpuScheduler(() => now, count);
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
    await whileTurning(() => Array.from({ length: 5 }, (_, n) => turns.run("one", work(`${n}`, 2))));
    assert.deepEqual(log.join(""), "01234");
  });

  it("leave the event loop its turn after 10 ms of work", async () => {
    await whileTurning(() => Array.from({ length: 6 }, (_, n) => turns.run("one", work(`${n}`, 5))));
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
      assert.equal(throttled, 1, "reported");
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

  describe("of quick work", () => {
    const clock = fakeClock();

    it("come at once while its name may use more time, whatever else waits", () => {
      for (let n = 0; n < 3; n++) void turns.run("busy", work("b", 10));
      void turns.quick("modest", work("m", 1));
      void turns.quick("busy", work("q", 1));
      assert.deepEqual(log, ["b", "m", "q"]);
    });

    it("come in their order, before other work of the name, once its share has paid for all", async () => {
      void turns.run("greedy", work("", 300));
      for (const name of ["a", "b"]) void turns.run("greedy", work(name, 10));
      for (const name of ["1", "2", "3"]) void turns.quick("greedy", work(name, 1));
      assert.deepEqual([log, throttled], [[""], 5]);
      for (let time = 0; time < 40; time++) {
        now += 10;
        await clock.pass(10);
      }
      assert.equal(log.join(""), "123ab");
    });
  });

  describe("of a generator", () => {
    /** Steps of so many ms, each with its own name in the log. */
    function* steps(name: string, count: number, ms: number): Generator<void, string> {
      for (let n = 0; n < count; n++) {
        work(`${name}${n}`, ms)();
        yield;
      }
      return name;
    }

    it("run it at once if it is cheap", async () => {
      const whole = turns.steps("one", steps("a", 3, 2));
      assert.deepEqual(log, ["a0", "a1", "a2"]);
      assert.equal(await whole, "a");
    });

    it("interrupt it after 10 ms", async () => {
      await whileTurning(() => [turns.steps("one", steps("a", 6, 5))]);
      assert.deepEqual(log.join("").replace(/\|$/, ""), "a0a1|a2a3|a4a5");
    });

    it("let names that used less time go between", async () => {
      const long = turns.steps("greedy", steps("a", 100, 1));
      await Promise.all([long, turns.run("modest", work("m", 1))]);
      assert.equal(log.indexOf("m"), 10);
    });

    it("throw what it throws", async () => {
      function* failing(): Generator<void, never> {
        yield;
        throw new Error("wrong");
      }
      await assert.rejects(turns.steps("one", failing()), /wrong/);
      assert.equal(await turns.run("one", () => 1), 1);
    });
  });

  describe("of many", () => {
    it("come to 20,000 works of one name in their order, and to another name before", async () => {
      const all = Array.from({ length: 20_000 }, (_, n) => turns.run("greedy", work(`${n}`, 0.005)));
      const began = performance.now();
      await Promise.all([turns.run("modest", work("m", 1)), ...all]);
      const took = performance.now() - began;
      assert.ok(took < 2_000, `${took} ms`);
      assert.deepEqual(
        log.filter((name) => name !== "m").map(Number),
        Array.from({ length: 20_000 }, (_, n) => n),
      );
      assert.ok(log.indexOf("m") <= 2_001, `${log.indexOf("m")}`);
    });

    it("forget names that owe nothing", async () => {
      for (let n = 0; n < 25_000; n++) {
        await turns.run(`name ${n}`, work("", 0.001));
        now += 1;
      }
      assert.ok(turns.busiest(Number.POSITIVE_INFINITY).length <= 10_000);
    });
  });

  it("name those that used the most time lately", async () => {
    const all = Array.from({ length: 3 }, () => turns.run("greedy", work("g", 60)));
    await Promise.all([turns.run("modest", work("m", 1)), ...all]);
    all.push(turns.run("greedy", work("g", 60)));
    const shown = turns
      .busiest(2)
      .map(({ name, share, waiting }) => ({ name, percent: (100 * share).toFixed(2), waiting }));
    assert.deepEqual(shown, [
      { name: "greedy", percent: "0.30", waiting: 1 },
      { name: "modest", percent: "0.00", waiting: 0 },
    ]);
    await Promise.all(all);
    now += 60_000;
    const [later] = turns.busiest(1);
    assert.ok(later && later.share < 0.002, "what is long ago counts less");
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
