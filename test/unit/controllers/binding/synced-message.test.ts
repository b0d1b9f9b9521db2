/** The sentence on what a binding wrote, and the hint at a rollout that needs attention. */
import assert from "node:assert/strict";
import { UnintendedTarget } from "../../../../src/apimachinery/problem.ts";
import type { ConditionReason } from "../../../../src/apimachinery/reasons.ts";
import { statusOf } from "../../../../src/controllers/binding/conditions.ts";
import { syncedMessage } from "../../../../src/controllers/binding/synced-message.ts";
import type { TargetOutcome } from "../../../../src/targets/outcome.ts";
import { bindingOf, recordOf } from "../../objects.ts";

const wrote = (name: string, paths: string[], kind = "HarborCluster"): TargetOutcome => ({
  record: recordOf({ name, kind, paths }),
});

describe("the message of a synced binding", () => {
  it("says in one sentence what was written", () => {
    const one = wrote("harbor", ["spec.a", "spec.b"]);
    assert.equal(syncedMessage([one], []), "HarborCluster registry/harbor has the values of 2 fields");
    const three = ["a", "b", "c"].map((name) => wrote(name, ["spec.a", "spec.b"]));
    assert.equal(syncedMessage(three, []), "all 3 HarborCluster objects have the values of 6 fields");
    const mixed = [wrote("a", ["data.x"], "ConfigMap"), one];
    assert.equal(syncedMessage(mixed, []), "all 2 targets have the values of 3 fields");
    assert.equal(syncedMessage([wrote("a", ["spec.a"])], []), "HarborCluster registry/a has the value of 1 field");
    assert.equal(syncedMessage([wrote("a", []), wrote("b", [])], []), "all 2 HarborCluster objects are up to date");
  });

  it("says if there is nothing to write", () => {
    assert.equal(syncedMessage([], ["no object matches spec.targets[0]"]), "no object matches spec.targets[0]");
    assert.equal(syncedMessage([], []), "there are no targets to write, only workloads to restart");
  });

  it("does not count an object that the selection can't have meant, and says so", () => {
    const message = "namespace a is being deleted";
    const excluded = { ...wrote("a", ["spec.a"]), excluded: new UnintendedTarget("TargetNotFound", message) };
    assert.equal(syncedMessage([excluded], []), message);
    const noted = "HarborCluster registry/b has the value of 1 field; see the notes in status";
    assert.equal(syncedMessage([excluded, wrote("b", ["spec.a"])], []), noted);
    const { synced, targets, conditions } = statusOf(bindingOf(), [excluded, wrote("b", ["spec.a"])], [], new Date());
    assert.deepEqual([synced, conditions?.[0]?.status], ["1/1", "True"]);
    // The record stays for the release, and for the namespace's return.
    assert.deepEqual(
      targets?.map(({ reason, message, paths }) => [reason, message, paths]),
      [
        ["TargetNotFound", "namespace a is being deleted", ["spec.a"]],
        ["Synced", undefined, ["spec.a"]],
      ],
    );
  });

  it("refers to the notes in status instead of repeating them", () => {
    const noted = "HarborCluster registry/a has the value of 1 field; see the notes in status";
    assert.equal(syncedMessage([{ ...wrote("a", ["spec.a"]), note: "omitted: spec.b" }], []), noted);
    assert.equal(syncedMessage([wrote("a", ["spec.a"])], ["no object matches spec.targets[1]"]), noted);
  });

  it("has a hint if the rollout needs attention, and none while it waits or continues", () => {
    const hinted = (reason: ConditionReason, ready: "True" | "False" = "False") => {
      const rollout = { status: undefined, verdict: { ready, reason, message: "why" } };
      const { conditions } = statusOf(bindingOf(), [wrote("a", ["spec.a"])], [], new Date(), undefined, rollout);
      return conditions?.[0]?.message.split("; ")[1];
    };
    for (const reason of ["RolloutFailed", "RestartBlocked", "WorkloadNotFound", "Forbidden"] as const)
      assert.equal(hinted(reason), `the rollout is not complete (${reason}), see the condition RolledOut`);
    for (const reason of ["RollingOut", "Debounce", "OutsideWindow", "MinInterval", "Suspended"] as const)
      assert.equal(hinted(reason), undefined);
    assert.equal(hinted("RolledOut", "True"), undefined);
  });
});
