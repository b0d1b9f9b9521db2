/** Work on many items at once, with a limit. */
import assert from "node:assert/strict";
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import { settled } from "../clock.ts";

describe("concurrent work", () => {
  it("returns results in the order of the items, with at most 32 at once", async () => {
    let running = 0;
    let most = 0;
    const things = Array.from({ length: 100 }, (_, index) => index);
    const results = await mapConcurrent(things, async (thing) => {
      most = Math.max(most, ++running);
      await settled();
      running--;
      return thing * 2;
    });
    assert.deepEqual(
      results,
      things.map((thing) => thing * 2),
    );
    assert.equal(most, 32);
  });

  it("ends when all items have ended, also if one failed", async () => {
    let ended = 0;
    const work = mapConcurrent([1, 2, 3], async (thing) => {
      if (thing === 1) throw new Error("one");
      await settled();
      ended++;
    });
    await assert.rejects(work, /one/);
    assert.equal(ended, 2);
  });

  it("does nothing without items", async () => {
    assert.deepEqual(await mapConcurrent([], () => assert.fail()), []);
  });
});
