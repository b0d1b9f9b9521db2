/** The record of the copies of Jobs in the status. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../../src/api/rollout.ts";
import { JobCopies } from "../../../../src/rollout/restart/recreate-job.ts";

type Entry = NonNullable<NonNullable<RolloutStatus["pending"]>["workloads"]>[number];

function statusOf(...workloads: Partial<Entry>[]): RolloutStatus {
  const job = { apiVersion: "batch/v1", kind: "Job", namespace: "shop", name: "job", state: "Waiting" } as const;
  const entries = workloads.map((each): Entry => ({ ...job, uid: "", ...each }));
  const pending = { firstChangeTime: "", lastChangeTime: "", reason: "", message: "", workloads: entries };
  return { digestKeyID: "one", revision: 0, pending };
}
const copiesIn = (status: RolloutStatus | undefined) => status?.pending?.workloads?.map(({ copyUID }) => copyUID);

describe("the copies of Jobs", () => {
  it("are recorded before a Job may be deleted: those that come during a write share the next one", async () => {
    const written: unknown[] = [];
    const answers: (() => void)[] = [];
    const copies = new JobCopies(statusOf({ uid: "a" }, { uid: "b" }, { uid: "c" }), (status) => {
      written.push(copiesIn(status));
      return new Promise((answer) => void answers.push(answer));
    });
    const writes = [copies.of("a").write("1")];
    await new Promise(setImmediate);
    writes.push(copies.of("b").write("2"), copies.of("c").write("3"));
    await new Promise(setImmediate);
    assert.deepEqual(written, [["1", undefined, undefined]]);
    answers[0]?.();
    await writes[0];
    await new Promise(setImmediate);
    assert.deepEqual(written.slice(1), [["1", "2", "3"]]);
    answers[1]?.();
    await Promise.all(writes);
    assert.deepEqual(copiesIn(copies.status), ["1", "2", "3"]);
  });

  it("in the status are not written again", async () => {
    const copies = new JobCopies(statusOf({ uid: "a", copyUID: "1" }), () => assert.fail("written"));
    assert.equal(copies.of("a").uid, "1");
    assert.equal(copies.of("b").uid, undefined);
    await copies.of("a").write("1");
  });

  it("are not recorded if their write fails, and the next write includes them", async () => {
    let isDown = true;
    const copies = new JobCopies(statusOf({ uid: "a" }, { uid: "b" }), async () => {
      if (isDown) throw new Error("503");
    });
    await assert.rejects(copies.of("a").write("1"), /503/);
    isDown = false;
    await copies.of("b").write("2");
  });
});
