/** In what order and how often keys go to the worker. Time does not pass unless a test moves it. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { Outdated, type WorkQueue, type WorkResult } from "../../../src/workqueue/work-queue.ts";
import { fakeClock, settled } from "../clock.ts";
import { BACKOFF, DONE, heldQueue, startedQueue } from "./held-queue.ts";

/** A queue whose worker ends at once, with the results in turn. */
const depthOf = ({ depths: { change, resync, retry } }: WorkQueue) => change + resync + retry;

function quickQueue(work: (key: string) => WorkResult, concurrency = 1) {
  const started: string[] = [];
  const errors: unknown[] = [];
  const queue = startedQueue({
    concurrency,
    backoffMs: { first: 100, most: 1_000 },
    onError: (_, error) => errors.push(error),
    work: async (key) => {
      started.push(key);
      return work(key);
    },
  });
  return { queue, started, errors };
}

describe("the work queue", () => {
  const clock = fakeClock();

  it("runs a key once, however often it was added before its turn", async () => {
    const { queue, started, finish } = heldQueue(1);
    queue.add("busy");
    for (const key of ["a", "b", "a", "a", "b"]) queue.add(key);
    assert.equal(depthOf(queue), 2);
    await finish("busy");
    await finish("a");
    await finish("b");
    assert.deepEqual(started, ["busy", "a", "b"]);
    assert.equal(depthOf(queue), 0);
  });

  it("waits for longer than the longest timer of Node", async () => {
    const { queue, started } = quickQueue(() => ({ retry: "after", ms: 1_000 * 3_600_000 }));
    queue.add("a");
    await clock.pass(24 * 3_600_000);
    assert.deepEqual(started, ["a"]);
    await clock.pass(24 * 24 * 3_600_000);
    assert.deepEqual(started, ["a", "a"]);
  });

  it("runs a key once more after it was added while it ran, and not at the same time", async () => {
    const { queue, started, underWay, finish } = heldQueue(5);
    queue.add("a");
    await settled();
    queue.add("a");
    queue.add("a");
    await settled();
    assert.equal(underWay.length, 1);
    await finish("a");
    assert.deepEqual(started, ["a", "a"]);
    await finish("a");
    assert.deepEqual(started, ["a", "a"]);
  });

  it("runs a key once more that its own worker adds before the first await", async () => {
    let running = 0;
    let most = 0;
    let runs = 0;
    const queue: WorkQueue = startedQueue({
      concurrency: 5,
      backoffMs: { first: 1, most: 1 },
      onError: assert.fail,
      work: async (key) => {
        most = Math.max(most, ++running);
        if (++runs === 1) queue.add(key);
        await settled();
        running--;
        return DONE;
      },
    });
    queue.add("a");
    for (let turn = 0; turn < 4; turn++) await settled();
    assert.deepEqual({ runs, most }, { runs: 2, most: 1 });
  });

  it("runs as many keys at once as its concurrency, and no more", async () => {
    const { queue, underWay, finish } = heldQueue(3);
    for (let key = 0; key < 10; key++) queue.add(`k${key}`);
    await settled();
    assert.equal(underWay.length, 3);
    assert.equal(depthOf(queue), 7);
    await finish("k1");
    assert.deepEqual(
      underWay.map(({ key }) => key),
      ["k0", "k2", "k3"],
    );
  });

  it("retries with pauses that double up to a limit, each within a quarter of it", async () => {
    const { queue, started } = quickQueue(() => BACKOFF);
    queue.add("a");
    for (const [run, pause] of [100, 200, 400, 800, 1_000, 1_000].entries()) {
      await clock.pass(pause * 0.75 - 1);
      assert.equal(started.length, run + 1, `before ${pause} ms`);
      await clock.pass(pause * 0.5 + 1);
      assert.equal(started.length, run + 2, `after ${pause} ms`);
    }
    await queue.stop();
  });

  it("begins with the shortest pause again after a successful run", async () => {
    const results = [BACKOFF, BACKOFF, BACKOFF, DONE, BACKOFF];
    const { queue, started } = quickQueue(() => results.shift() ?? DONE);
    queue.add("a");
    for (const pause of [125, 250, 500]) await clock.pass(pause);
    assert.equal(started.length, 4);
    queue.add("a");
    await clock.pass(0);
    await clock.pass(125);
    assert.equal(started.length, 6);
  });

  it("runs a key again after the time that its worker asked for", async () => {
    const results: WorkResult[] = [{ retry: "after", ms: 5_000 }];
    const { queue, started } = quickQueue(() => results.shift() ?? DONE);
    queue.add("a");
    await clock.pass(4_999);
    assert.equal(started.length, 1);
    await clock.pass(1);
    assert.equal(started.length, 2);
    await clock.pass(60_000);
    assert.equal(started.length, 2);
  });

  it("runs a key at once that changes while it waits for a retry, and drops that retry", async () => {
    const results: WorkResult[] = [{ retry: "after", ms: 5_000 }];
    const { queue, started } = quickQueue(() => results.shift() ?? DONE);
    queue.add("a");
    await clock.pass(10);
    queue.add("a");
    await clock.pass(0);
    assert.equal(started.length, 2);
    await clock.pass(60_000);
    assert.equal(started.length, 2);
  });

  it("retries with pauses that double up to the limit of the result", async () => {
    const { queue, started } = quickQueue(() => ({ retry: "backoff", mostMs: 10_000 }));
    queue.add("a");
    await clock.pass(0);
    for (const ms of [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]) {
      const { length } = started;
      await clock.pass(0.75 * ms - 1);
      assert.equal(started.length, length, String(ms));
      await clock.pass(0.5 * ms + 1);
      assert.equal(started.length, length + 1, String(ms));
    }
  });

  it("reports what the worker throws, and retries the key with backoff", async () => {
    const bug = new TypeError("a bug");
    const { queue, started, errors } = quickQueue(() => {
      if (started.length === 1) throw bug;
      return DONE;
    });
    queue.add("a");
    await clock.pass(125);
    assert.deepEqual(errors, [bug]);
    assert.equal(started.length, 2);
  });

  it("retries a key whose object changed after it was read, and reports no error", async () => {
    const { queue, started, errors } = quickQueue(() => {
      if (started.length === 1) throw new Outdated();
      return DONE;
    });
    queue.add("a");
    await clock.pass(125);
    assert.deepEqual([errors, started.length], [[], 2]);
  });

  it("continues if the worker throws before it returns a promise", async () => {
    let runs = 0;
    const queue = startedQueue({
      concurrency: 1,
      backoffMs: { first: 100, most: 1_000 },
      onError: () => {},
      work: () => {
        if (++runs === 1) throw new TypeError("a bug");
        return Promise.resolve(DONE);
      },
    });
    queue.add("a");
    await clock.pass(125);
    assert.equal(runs, 2);
    await queue.stop();
  });

  it("lets no failing key delay the others", async () => {
    const { queue, started } = quickQueue((key) => (key === "bad" ? BACKOFF : DONE));
    queue.add("bad");
    for (let round = 0; round < 10; round++) {
      for (const key of ["a", "b", "c"]) queue.add(key);
      await clock.pass(100);
    }
    const good = started.filter((key) => key !== "bad");
    assert.equal(good.length, 30);
    assert.ok(started.length - good.length < 6, `${started.length - good.length} runs of the bad key`);
    await queue.stop();
  });

  it("waits for present runs when it is stopped, and begins no other", async () => {
    const { queue, started, finish } = heldQueue(1);
    queue.add("a");
    await settled();
    queue.add("a");
    queue.add("b");
    let stopped = false;
    const stop = queue.stop().then(() => {
      stopped = true;
    });
    queue.add("c");
    await settled();
    assert.equal(stopped, false);
    await finish("a", BACKOFF);
    await stop;
    await clock.pass(60_000);
    assert.deepEqual(started, ["a"]);
    assert.equal(depthOf(queue), 0);
  });

  it("never runs a key twice at once, and runs each key after it was last added, in any order of events", async () => {
    const key = fc.constantFrom("a", "b", "c");
    const step = fc.oneof(
      fc.record({ do: fc.constant("add" as const), key }),
      fc.record({ do: fc.constant("finish" as const), nth: fc.nat(3), result: fc.constantFrom(DONE, BACKOFF) }),
      fc.record({ do: fc.constant("fail" as const), nth: fc.nat(3) }),
      fc.record({ do: fc.constant("pass" as const), ms: fc.nat(500) }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 3 }),
        async (steps, concurrency) => {
          const { queue, started, underWay } = heldQueue(concurrency);
          /** How many runs of a key had begun when it was last added. */
          const owed = new Map<string, number>();
          const runsOf = (some: string) => started.filter((each) => each === some).length;
          for (const each of steps) {
            const run = "nth" in each ? underWay[each.nth % Math.max(underWay.length, 1)] : undefined;
            if (each.do === "add") {
              owed.set(each.key, runsOf(each.key));
              queue.add(each.key);
            } else if (each.do === "pass") await clock.pass(each.ms);
            else if (each.do === "fail") run?.fail(new Error("a bug"));
            else run?.finish(each.result);
            await settled();
            const keys = underWay.map((under) => under.key);
            assert.equal(new Set(keys).size, keys.length, `at once: ${keys}`);
            assert.ok(keys.length <= concurrency);
          }
          for (let round = 0; round < 20 && underWay.length > 0; round++) {
            for (const run of [...underWay]) run.finish(DONE);
            await settled();
          }
          for (const [some, before] of owed) assert.ok(runsOf(some) > before, `${some} never ran after it was added`);
          await queue.stop();
        },
      ),
      { numRuns: 60 },
    );
  });
});
