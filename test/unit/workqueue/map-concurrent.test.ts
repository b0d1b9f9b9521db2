/** That many things are worked on at once, but not too many. */
import assert from "node:assert/strict";
import { mapConcurrent } from "../../../src/workqueue/map-concurrent.ts";
import { settled } from "../clock.ts";

describe("work side by side", () => {
  it("gives results in the order of the things, with 32 under way at most", async () => {
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

  it("ends when all have ended, also when one failed", async () => {
    let ended = 0;
    const work = mapConcurrent([1, 2, 3], async (thing) => {
      if (thing === 1) throw new Error("one");
      await settled();
      ended++;
    });
    await assert.rejects(work, /one/);
    assert.equal(ended, 2);
  });

  it("is nothing where there is nothing to do", async () => {
    assert.deepEqual(await mapConcurrent([], () => assert.fail()), []);
  });
});
