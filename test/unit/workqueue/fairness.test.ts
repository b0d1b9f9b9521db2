/** Which keys go first, how a bad key does not delay others, and what the metrics hooks get. */
import assert from "node:assert/strict";
import type { WorkResult } from "../../../src/workqueue/work-queue.ts";
import { fakeClock, settled } from "../clock.ts";
import { BACKOFF, DONE, heldQueue, startedQueue } from "./held-queue.ts";

describe("the work queue's order", () => {
  const clock = fakeClock();

  it("runs changed keys before resynced ones, and both before failed ones", async () => {
    const { queue, started, finish } = heldQueue(1);
    queue.add("bad");
    await settled();
    for (const key of ["r1", "r2"]) queue.add(key, "resync");
    for (const key of ["bad", "c1", "r2"]) queue.add(key);
    queue.add("c1", "resync");
    assert.deepEqual(queue.depths, { change: 2, resync: 1, retry: 0 });
    await finish("bad", BACKOFF);
    assert.deepEqual(queue.depths, { change: 1, resync: 1, retry: 1 });
    for (const key of ["c1", "r2", "r1", "bad"]) await finish(key);
    assert.deepEqual(started, ["bad", "c1", "r2", "r1", "bad"]);
    assert.deepEqual(queue.depths, { change: 0, resync: 0, retry: 0 });
  });

  it("delays no key forever, however much changes", async () => {
    const { queue, started, finish } = heldQueue(1);
    queue.add("bad");
    await finish("bad", BACKOFF);
    queue.add("c0");
    await settled();
    queue.add("bad");
    queue.add("looked-at", "resync");
    for (let change = 1; change <= 10; change++) {
      queue.add(`c${change}`);
      await finish(started.at(-1) ?? "");
    }
    assert.ok(started.includes("looked-at") && started.lastIndexOf("bad") > 0, `${started}`);
  });

  it("keeps runs for other keys while failed keys are slow", async () => {
    const { queue, underWay, finish } = heldQueue(4);
    const bad = ["b1", "b2", "b3", "b4", "b5"];
    for (const key of bad) {
      queue.add(key);
      await finish(key, BACKOFF);
    }
    const keys = () => underWay.map(({ key }) => key);
    for (const key of bad) queue.add(key);
    await settled();
    assert.deepEqual(keys(), ["b1", "b2", "b3"]);
    queue.add("good");
    await settled();
    assert.deepEqual(keys(), ["b1", "b2", "b3", "good"]);
    await finish("b1");
    assert.deepEqual(keys(), ["b2", "b3", "good", "b4"]);
  });

  for (const [concurrency, most] of [
    [1, 1],
    [2, 1],
    [3, 2],
    [5, 3],
  ] as const)
    it(`runs ${most} of the keys that failed at once, if it may run ${concurrency}`, async () => {
      const { queue, underWay, finish } = heldQueue(concurrency);
      const bad = ["b1", "b2", "b3", "b4", "b5"];
      for (const key of bad) {
        queue.add(key);
        await finish(key, BACKOFF);
      }
      for (const key of bad) queue.add(key);
      await settled();
      assert.equal(underWay.length, most);
    });

  it("reports to its hooks how long keys waited and ran, and how each run ended", async () => {
    const calls: string[] = [];
    const results: WorkResult[] = [DONE, BACKOFF, { retry: "after", ms: 60_000 }];
    const began = performance.now();
    const isSeconds = (time: number) => assert.ok(time >= 0 && time <= (performance.now() - began) / 1_000, `${time}`);
    const queue = startedQueue({
      concurrency: 1,
      backoffMs: { first: 100, most: 1_000 },
      onError: () => {},
      work: async (key) => {
        if (key === "bug") throw new TypeError("a bug");
        return results.shift() ?? DONE;
      },
      hooks: {
        added: () => calls.push("added"),
        retried: () => calls.push("retried"),
        started: isSeconds,
        ended: (seconds, result) => {
          isSeconds(seconds);
          calls.push(result);
        },
      },
    });
    for (const key of ["done", "fails", "waits", "bug"]) {
      queue.add(key);
      await settled();
    }
    const retries = ["backoff", "after", "error"].flatMap((result) => ["added", result, "retried"]);
    assert.deepEqual(calls, ["added", "never", ...retries]);
    await queue.stop();
  });

  describe("of retries that share a rate limit", () => {
    /** How often each of some keys is tried in a minute and a half, once their pauses have grown. */
    async function tries(count: number, rateLimitGroup: string | undefined): Promise<number> {
      let tried = 0;
      const queue = startedQueue({
        concurrency: 1_000,
        backoffMs: { first: 100, most: 1_000 },
        onError: (_, error) => assert.fail(String(error)),
        work: async (key) => {
          tried += 1;
          return key === "good" ? DONE : { retry: "backoff", ...(rateLimitGroup !== undefined && { rateLimitGroup }) };
        },
      });
      for (let n = 0; n < count; n++) queue.add(`${n}`);
      for (let second = 0; second < 10; second++) await clock.pass(1_000);
      tried = 0;
      for (let second = 0; second < 90; second++) await clock.pass(1_000);
      await queue.stop();
      return tried;
    }

    it("runs twenty a second, however many there are", async () => {
      const few = await tries(10, "a");
      assert.ok(few > 500, `${few}`);
      const many = await tries(500, "a");
      assert.ok(many > 90 * 13 && many < 90 * 27, `${many}`);
    });

    it("does not limit other retries", async () => {
      const many = await tries(500, undefined);
      assert.ok(many > 90 * 300, `${many}`);
    });

    it("does not count keys that are done, or run for another reason", async () => {
      const { queue, started, finish } = heldQueue(100);
      const retry = { retry: "after", ms: 10, rateLimitGroup: "a" } as const;
      const keys = Array.from({ length: 100 }, (_, n) => `${n}`);
      for (const key of keys) queue.add(key);
      for (const key of keys) await finish(key, retry);
      for (const key of keys) queue.add(key);
      for (const key of keys) await finish(key);
      queue.add("last");
      await finish("last", retry);
      await clock.pass(70);
      assert.equal(started.filter((key) => key === "last").length, 2);
      await finish("last");
      await queue.stop();
    });
  });

  describe("of groups", () => {
    const groupOf = (key: string) => key.slice(0, 1);

    it("gives them turns, however many keys one has", async () => {
      const { queue, started, finish } = heldQueue(1, groupOf);
      for (let n = 0; n < 50; n++) queue.add(`a${n}`);
      for (const key of ["b0", "b1", "c0"]) queue.add(key);
      for (const key of ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]) await finish(key);
      assert.deepEqual(started, ["a0", "a1", "b0", "c0", "a2", "b1", "a3", "a4"]);
    });

    it("runs a key of a group of which no key runs at once, however many keys of others are slow", async () => {
      const { queue, underWay } = heldQueue(32, (key) => key.split("/")[0] ?? "");
      for (let group = 0; group < 20; group++) for (let n = 0; n < 10; n++) queue.add(`slow-${group}/${n}`);
      await settled();
      for (let victim = 0; victim < 12; victim++) {
        queue.add(`victim-${victim}/0`);
        await settled();
        assert.equal(underWay.at(-1)?.key, `victim-${victim}/0`);
      }
      for (let group = 0; group < 100; group++) queue.add(`other-${group}/0`);
      await settled();
      const running = new Set(underWay.map(({ key }) => key.split("/")[0]));
      assert.ok(underWay.length <= 64 && running.size === 32, `${running.size} groups with ${underWay.length} runs`);
    });

    it("runs no more keys than it may if each is of another group", async () => {
      const { queue, underWay } = heldQueue(8, (key) => key);
      for (let group = 0; group < 100; group++) queue.add(`${group}`);
      await settled();
      assert.equal(underWay.length, 8);
    });

    it("leaves runs to other groups while one has more keys than there are runs", async () => {
      const { queue, underWay, finish } = heldQueue(16, groupOf);
      for (let n = 0; n < 50; n++) queue.add(`a${n}`);
      await settled();
      assert.equal(underWay.length, 4);
      for (let n = 0; n < 50; n++) queue.add(`b${n}`);
      queue.add("c0");
      await settled();
      const counts = () =>
        ["a", "b", "c", "d"].map((group) => underWay.filter(({ key }) => groupOf(key) === group).length);
      assert.deepEqual(counts(), [4, 4, 1, 0]);
      await finish("a0");
      await finish("c0");
      queue.add("d0");
      await settled();
      assert.deepEqual(counts(), [4, 4, 0, 1]);
    });
  });
});
