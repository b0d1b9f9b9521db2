import assert from "node:assert/strict";
import type { Condition } from "../../../src/api/binding.ts";
import { isStalled, withProgress } from "../../../src/api/progress.ts";
import { type Reason, retryPolicies } from "../../../src/apimachinery/problem.ts";
import { STATE_REASONS, storedReason } from "../../../src/apimachinery/reasons.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const LATER = new Date("2026-01-02T04:00:00Z");

type Given = readonly [type: string, status: Condition["status"], reason: string];

const conditionsOf = (...given: readonly Given[]) =>
  given.map(([type, status, reason]): Condition => {
    return { type, status, reason, message: `${type}: ${reason}`, lastTransitionTime: "2026-01-01T00:00:00Z" };
  });

const derivedFrom = (...given: readonly Given[]) => {
  const derived = withProgress({ metadata: { generation: 3 } }, conditionsOf(...given), NOW).slice(given.length);
  return derived.map(({ type, status, reason }) => [type, status, reason]);
};

describe("the conditions Reconciling and Stalled", () => {
  it("are absent from an object that is ready", () => {
    assert.deepEqual(derivedFrom(["Ready", "True", "Synced"], ["RolledOut", "True", "RolledOut"]), []);
    assert.deepEqual(derivedFrom(["Accepted", "True", "Accepted"], ["Ready", "True", "Ready"]), []);
  });

  for (const [reason, policy] of Object.entries(retryPolicies)) {
    const type = policy === "Terminal" ? "Stalled" : "Reconciling";
    it(`are ${type} for ${reason}`, () => {
      assert.deepEqual(derivedFrom(["Ready", "False", reason]), [[type, "True", reason]]);
      assert.deepEqual(derivedFrom(["Ready", "True", "Synced"], ["RolledOut", "False", reason]), [
        [type, "True", reason],
      ]);
    });
  }

  it("are Stalled for no other reason but a failed rollout", () => {
    const all = [...Object.keys(retryPolicies), ...STATE_REASONS].filter((each) => isStalled(storedReason(each)));
    const terminal = Object.keys(retryPolicies).filter((each) => retryPolicies[each as Reason] === "Terminal");
    assert.deepEqual(all, [...terminal, "RestartReverted", "RolloutFailed"]);
  });

  it("are Reconciling while a rollout continues, or claims wait", () => {
    const rolling = derivedFrom(["Ready", "True", "Synced"], ["RolledOut", "False", "RollingOut"]);
    assert.deepEqual(rolling, [["Reconciling", "True", "RollingOut"]]);
    const waiting = derivedFrom(["Accepted", "True", "Accepted"], ["Ready", "Unknown", "Reconciling"]);
    assert.deepEqual(waiting, [["Reconciling", "True", "Reconciling"]]);
  });

  it("are never both: a mistake comes before what waits", () => {
    const both = derivedFrom(["Ready", "False", "RolloutPending"], ["RolledOut", "False", "RolloutFailed"]);
    assert.deepEqual(both, [["Stalled", "True", "RolloutFailed"]]);
  });

  it("are absent while a user suspends the object or its rollout", () => {
    assert.deepEqual(derivedFrom(["Ready", "Unknown", "Suspended"], ["RolledOut", "False", "RollingOut"]), []);
    assert.deepEqual(derivedFrom(["Accepted", "True", "Accepted"], ["Ready", "Unknown", "Suspended"]), []);
    assert.deepEqual(derivedFrom(["Ready", "True", "Synced"], ["RolledOut", "False", "Suspended"]), []);
  });

  it("ignore a part of the installation that is missing", () => {
    assert.deepEqual(derivedFrom(["Ready", "True", "Synced"], ["InstallationComplete", "False", "PolicyMissing"]), []);
  });

  it("keep the time at which they became True", () => {
    const metadata = { generation: 3 };
    const first = withProgress({ metadata }, conditionsOf(["Ready", "False", "SourceNotFound"]), NOW);
    assert.equal(first[1]?.lastTransitionTime, "2026-01-02T03:04:05Z");
    const next = conditionsOf(["Ready", "False", "KeyNotFound"]);
    const second = withProgress({ metadata, status: { conditions: first } }, next, LATER);
    const { reason, message, lastTransitionTime, observedGeneration } = second[1] ?? {};
    assert.deepEqual(
      [reason, message, lastTransitionTime, observedGeneration],
      ["KeyNotFound", "Ready: KeyNotFound", "2026-01-02T03:04:05Z", 3],
    );
    const stalled = conditionsOf(["Ready", "False", "InvalidPath"]);
    const third = withProgress({ metadata, status: { conditions: second } }, stalled, LATER);
    assert.deepEqual(
      [third.length, third[1]?.type, third[1]?.lastTransitionTime],
      [2, "Stalled", "2026-01-02T04:00:00Z"],
    );
  });
});
