/** Turns for work that may have to be repeated. */
import assert from "node:assert/strict";
import { SlowBucket } from "../../../src/workqueue/slow-bucket.ts";
import { fakeClock, settled } from "../clock.ts";

describe("turns", () => {
  const clock = fakeClock();
  const never = new AbortController().signal;
  let bucket: SlowBucket;
  let done: string[];
  beforeEach(() => {
    bucket = new SlowBucket(10);
    done = [];
  });
  const take = (group: string, signal = never) => void bucket.take(group, signal).then(() => done.push(group));

  it("are limited per second for all groups, which alternate", async () => {
    for (let n = 0; n < 5; n++) take("many");
    take("few");
    await settled();
    assert.deepEqual(done, ["many"]);
    await clock.pass(100);
    await clock.pass(100);
    assert.deepEqual(
      done,
      ["many", "many", "few"].toSorted((a, b) => done.indexOf(a) - done.indexOf(b)),
    );
    assert.ok(done.includes("few"));
  });

  it("come at once after a turn with a result", async () => {
    take("a");
    take("b");
    bucket.refund();
    await settled();
    assert.deepEqual(done, ["a", "b"]);
  });

  it("are not kept for a caller that gives up", async () => {
    const end = new AbortController();
    take("a");
    take("b", end.signal);
    take("c");
    end.abort();
    await clock.pass(100);
    assert.deepEqual(done.toSorted(), ["a", "b", "c"]);
  });
});
