/** The record of a target before its write. */
import assert from "node:assert/strict";
import type { Decision, Desired } from "../../../src/apply/decide.ts";
import { intentRecord, releasedRecord } from "../../../src/targets/record-changes.ts";
import { liveObject } from "../apply/managed.ts";
import { recordOf } from "../objects.ts";

const desired = { plan: { fields: [], omitted: [] } } as unknown as Desired;
const writing = (...acquires: string[]) => ({ write: true, acquires, parents: [] }) as unknown as Decision;
const failed = (reason: string, pendingPaths?: string[]) =>
  recordOf({ uid: "uid-1", reason, message: "why", ...(pendingPaths && { pendingPaths }) });

describe("the record of a target that is about to be written", () => {
  it("is reset when it announces a path, so that other bindings wait for the outcome", () => {
    for (const before of [failed("SourceNotFound"), failed("Rejected", ["spec.a"])]) {
      const { reason, message, pendingPaths } = intentRecord(
        before,
        liveObject({}),
        desired,
        writing("spec.a", "spec.b"),
      );
      assert.deepEqual([reason, message, pendingPaths], ["Pending", undefined, ["spec.a", "spec.b"]]);
    }
  });

  it("does not change for a retry of the same write, so that retries write no status", () => {
    const before = failed("Rejected", ["spec.a"]);
    assert.deepEqual(intentRecord(before, liveObject({}), desired, writing("spec.a")), before);
  });
});

describe("the record of a target whose parents are known to be Inlay's", () => {
  it("has them, also if no field is acquired or written", () => {
    const before = recordOf({ uid: "uid-1", parents: ["spec.a"] });
    for (const write of [true, false]) {
      const decision = { write, acquires: [], parents: ["spec.b"] } as unknown as Decision;
      assert.deepEqual(intentRecord(before, liveObject({}), desired, decision), {
        ...before,
        parents: ["spec.a", "spec.b"],
      });
    }
  });
});

describe("the record of a target whose paths were released", () => {
  const before = recordOf({ paths: ["spec.a.b.c", "spec.d.e"], parents: ["spec.a", "spec.a.b", "spec.d"] });
  const released = (mode: "Retain" | "Remove") => releasedRecord(before, new Set(["spec.a.b.c"]), mode);

  it("remembers the parents of retained values, and forgets removed ones, which others may create again", () => {
    assert.deepEqual(released("Retain"), { ...before, paths: ["spec.d.e"] });
    assert.deepEqual(released("Remove"), { ...before, paths: ["spec.d.e"], parents: ["spec.d"] });
  });
});
