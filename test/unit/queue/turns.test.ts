/** That work which takes long leaves turns to all else, and that who took little does not wait for who took much. */
import assert from "node:assert/strict";
import { type Taker, Turns } from "../../../src/queue/turns.ts";

describe("turns", () => {
  let now: number;
  let turns: Turns;
  let log: string[];
  beforeEach(() => {
    now = 0;
    turns = new Turns(() => now);
    log = [];
  });
  const taker = (): Taker => ({ tookMs: 0 });
  const work = (name: string, ms: number) => () => {
    now += ms;
    log.push(name);
    return name;
  };
  /** Notes each turn of the event loop in which something was done, until all of it is. */
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

  it("give what the work gives, and throw what it throws", async () => {
    assert.equal(await turns.take(taker(), () => 1), 1);
    await assert.rejects(
      turns.take(taker(), () => {
        throw new Error("wrong");
      }),
      /wrong/,
    );
    assert.equal(await turns.take(taker(), () => 2), 2);
  });

  it("let small things be done at once", async () => {
    const one = taker();
    await whileTurning(() => Array.from({ length: 5 }, (_, n) => turns.take(one, work(`${n}`, 3))));
    assert.deepEqual(log.join(""), "01234");
  });

  it("leave the event loop its turn after 20 ms of work", async () => {
    const one = taker();
    await whileTurning(() => Array.from({ length: 6 }, (_, n) => turns.take(one, work(`${n}`, 10))));
    assert.deepEqual(log.join("").replace(/\|$/, ""), "01|23|45");
  });

  it("do one thing a turn where each takes long", async () => {
    const takers = [taker(), taker(), taker()];
    await whileTurning(() => takers.map((each, n) => turns.take(each, work(`${n}`, 500))));
    assert.deepEqual(log.join("").replace(/\|$/, ""), "0|1|2");
  });

  it("go to who took least", async () => {
    const [greedy, modest] = [taker(), taker()];
    const all = Array.from({ length: 50 }, (_, n) => turns.take(greedy, work(`g${n}`, 100)));
    await Promise.all(all.slice(0, 2));
    all.push(turns.take(modest, work("m", 1)));
    await Promise.all(all);
    assert.equal(log.indexOf("m"), 2);
    assert.deepEqual([greedy.tookMs, modest.tookMs], [5_000, 1]);
  });

  it("come to everyone, also after work that failed", async () => {
    const fails = Array.from({ length: 10 }, () =>
      turns.take(taker(), () => {
        now += 50;
        throw new Error("wrong");
      }),
    );
    const results = await Promise.allSettled([...fails, turns.take(taker(), work("last", 1))]);
    assert.equal(results.filter(({ status }) => status === "rejected").length, 10);
    assert.deepEqual(log, ["last"]);
  });
});
