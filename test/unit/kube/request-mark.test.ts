/** The permission to name bindings in requests. */
import assert from "node:assert/strict";
import { MarkPermission } from "../../../src/kube/request-budget.ts";
import { fakeClock } from "../clock.ts";

describe("the permission to mark requests", () => {
  const clock = fakeClock();

  it("is asked for once by many requests, and again after 30 seconds", async () => {
    const answers = [false, true];
    let asked = 0;
    const may = async (_: string, verb: string, { plural }: { plural: string }) => {
      assert.deepEqual([verb, plural], ["impersonate", "userextras/inlay.dev/binding"]);
      return answers[asked++] as boolean;
    };
    const permission = new MarkPermission({ may });
    assert.deepEqual(await Promise.all([permission.isGranted(), permission.isGranted()]), [false, false]);
    assert.deepEqual([await permission.isGranted(), asked], [false, 1]);
    await clock.pass(30_001);
    // No request waits for it.
    assert.deepEqual([await permission.isGranted(), asked], [false, 2]);
    assert.deepEqual([await permission.isGranted(), asked], [true, 2]);
  });

  it("is asked for again after an error, and stays as it was until there is an answer", async () => {
    const answers = [undefined, true, undefined, false];
    let asked = 0;
    const may = async () => {
      const answer = answers[asked++];
      if (answer === undefined) throw new Error("no answer");
      return answer;
    };
    const permission = new MarkPermission({ may });
    await assert.rejects(permission.isGranted(), /no answer/);
    assert.equal(await permission.isGranted(), true);
    await clock.pass(30_001);
    assert.deepEqual([await permission.isGranted(), asked], [true, 3]);
    await clock.pass(1);
    assert.deepEqual([await permission.isGranted(), asked], [true, 4]);
    await clock.pass(1);
    assert.deepEqual([await permission.isGranted(), asked], [false, 4]);
  });
});
