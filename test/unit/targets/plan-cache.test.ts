/** Work that is equal for all objects of an entry is done once, whether it succeeds or fails. */
import assert from "node:assert/strict";
import type { Target } from "../../../src/api/binding.ts";
import { Problem } from "../../../src/apimachinery/problem.ts";
import { PlanCache } from "../../../src/targets/plan-cache.ts";
import type { Plan } from "../../../src/transform/plan-types.ts";
import { CpuScheduler } from "../../../src/workqueue/cpu-scheduler.ts";

describe("the plan cache", () => {
  const plan = (): Plan => ({ fields: [], omitted: [] });
  const [one, other] = [{ kind: "One" }, { kind: "Other" }] as Target[] as [Target, Target];
  let planning: PlanCache;
  let count: number;
  beforeEach(() => {
    planning = new PlanCache(new CpuScheduler(), "team");
    count = 0;
  });
  const counted = <T>(work: () => T) => {
    return () => {
      count += 1;
      return work();
    };
  };

  it("plans an entry once, however many objects ask at once or later", async () => {
    const plans = await Promise.all(Array.from({ length: 40 }, () => planning.plan(one, counted(plan))));
    plans.push(await planning.plan(one, counted(plan)));
    assert.equal(count, 1);
    assert.ok(plans.every((each) => each === plans[0]));
    assert.notEqual(await planning.plan(other, counted(plan)), plans[0]);
    assert.equal(count, 2);
  });

  it("fails once for an entry, with the same Problem for all objects", async () => {
    const problem = new Problem("InvalidTemplate", "wrong");
    const fail = counted((): never => {
      throw problem;
    });
    for (let n = 0; n < 3; n++) {
      await assert.rejects(planning.plan(one, fail), problem);
      await assert.rejects(planning.check(one, fail), problem);
    }
    assert.equal(count, 2);
  });

  it("finds copies once for an entry in a namespace, also if there are none", async () => {
    const found = { paths: ["spec.a"], note: "" };
    const copies = (namespace: string) =>
      planning.copies(
        one,
        namespace,
        counted(() => (namespace === "own" ? undefined : found)),
      );
    const all = [await copies("own"), await copies("own"), await copies("other"), await copies("other")];
    assert.deepEqual([all, count], [[undefined, undefined, found, found], 2]);
  });

  it("works for each object if objects differ", async () => {
    for (let n = 0; n < 3; n++) await planning.alone(counted(plan));
    assert.equal(count, 3);
  });

  it("does not cache unexpected errors", async () => {
    const fail = counted((): Plan => {
      throw new TypeError("a bug");
    });
    await assert.rejects(planning.plan(one, fail), TypeError);
    await planning.plan(one, counted(plan));
    assert.equal(count, 2);
  });
});
