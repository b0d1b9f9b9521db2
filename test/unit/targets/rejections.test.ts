/** How often rejected writes are tried field by field, whatever changes. */
import assert from "node:assert/strict";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { Rejections } from "../../../src/targets/rejections.ts";

const TRIAL = { findings: ["spec.a is refused"], isWhole: true };

describe("the trials of rejected writes", () => {
  let now: number;
  let count: number;
  let rejections: Rejections;
  beforeEach(() => {
    [now, count] = [0, 0];
    rejections = new Rejections(() => now);
  });
  const rejected = (key: string, namespace = "team", sourceRevisions = "1") =>
    rejections.trial({ namespace, key, sourceRevisions, generation: 1, answer: "a" }, async () => {
      count++;
      return TRIAL;
    });

  it("are ten at once in a namespace, and ten a minute from then on, even if sources change all the time", async () => {
    for (let n = 0; n < 50; n++) await rejected("one", "team", `${n}`);
    assert.equal(count, 10);
    assert.equal(await rejected("one", "team", "last"), undefined);
    await rejected("one", "other", "last");
    assert.equal(count, 11);
    for (; now < 60_000; now += 1_000) await rejected("two", "team", `${now}`);
    assert.ok(count >= 20 && count <= 21, String(count));
  });

  it("of more targets than are remembered do not follow each retry", async () => {
    for (; now < 300_000; now += 30_000) for (let n = 0; n < 1_500; n++) await rejected(`${n}`);
    assert.ok(count <= 60, String(count));
  });

  it("are used even when they are old, if another may not be made", async () => {
    await rejected("old");
    now += 600_000;
    for (let n = 0; n < 20; n++) await rejected(`${n}`);
    const before = count;
    assert.deepEqual([await rejected("old"), count], [TRIAL, before]);
  });
});

describe("a reverted write", () => {
  it("is not repeated for the same sources for 25 seconds, unless a user requests to forget what is remembered", () => {
    let now = 0;
    const rejections = new Rejections(() => now);
    const problem = new Problem("Reverted", "spec.a");
    for (const key of ["one/target", "other/target"]) rejections.reverted(key, "1", problem);
    const remembered = () => ["one/target", "other/target"].map((key) => rejections.reversion(key, "1") === problem);
    assert.deepEqual([remembered(), rejections.reversion("one/target", "2")], [[true, true], undefined]);
    rejections.forget("one/");
    assert.deepEqual(remembered(), [false, true]);
    now = 25_000;
    assert.deepEqual(remembered(), [false, false]);
  });
});
