import assert from "node:assert/strict";
import type { Condition } from "../../../src/api/binding.ts";
import { STALLED_AFTER_MS, untilStalled, withProgress } from "../../../src/api/progress.ts";
import { catalogue } from "../../../src/apimachinery/problem.ts";
import { fixedBy, STATE_REASONS } from "../../../src/apimachinery/reasons.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const LATER = new Date("2026-01-02T04:00:00Z");

type Given = readonly [type: string, status: Condition["status"], reason: string];

type Reported = readonly [ms: number, reason: string, generation?: number];

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

  for (const [reason, { retry, fixedBy: by }] of Object.entries(catalogue)) {
    const type = by === "Edit" ? "Stalled" : "Reconciling";
    it(`are ${type} at first for ${reason}`, () => {
      assert.deepEqual(derivedFrom(["Ready", "False", reason]), [[type, "True", reason]]);
      assert.deepEqual(derivedFrom(["Ready", "True", "Synced"], ["RolledOut", "False", reason]), [
        [type, "True", reason],
      ]);
      // What only an edit can end does not end by itself.
      if (retry === "Terminal") assert.notEqual(by, "Itself");
    });
  }

  it("are Stalled at once for no other state but a failed rollout, and bindings that have waited", () => {
    const stalled = STATE_REASONS.filter((each) => derivedFrom(["Ready", "False", each])[0]?.[0] === "Stalled");
    assert.deepEqual(stalled, ["BindingsStalled", "RestartReverted", "RolloutFailed"]);
  });

  it("are Reconciling while a rollout continues, or claims wait", () => {
    const rolling = derivedFrom(["Ready", "True", "Synced"], ["RolledOut", "False", "RollingOut"]);
    assert.deepEqual(rolling, [["Reconciling", "True", "RollingOut"]]);
    const waiting = derivedFrom(["Accepted", "True", "Accepted"], ["Ready", "Unknown", "Reconciling"]);
    assert.deepEqual(waiting, [["Reconciling", "True", "Reconciling"]]);
  });

  it("are never both: what needs a user most comes first, and has its reason", () => {
    const rolloutFailed = derivedFrom(["Ready", "False", "SourceNotFound"], ["RolledOut", "False", "RolloutFailed"]);
    assert.deepEqual(rolloutFailed, [["Stalled", "True", "RolloutFailed"]]);
    const missing = derivedFrom(["Ready", "False", "RolloutPending"], ["RolledOut", "False", "WorkloadNotFound"]);
    assert.deepEqual(missing, [["Reconciling", "True", "WorkloadNotFound"]]);
  });

  it("are Reconciling while the only failure is one of the former spec", () => {
    const conditions = conditionsOf(["Ready", "True", "Synced"], ["RolledOut", "False", "RolloutFailed"]);
    const typeFor = (observedGeneration: number) =>
      withProgress(
        { metadata: { generation: 3 } },
        conditions.map((each) => ({ ...each, observedGeneration })),
        NOW,
      ).at(-1)?.type;
    assert.deepEqual([typeFor(2), typeFor(3)], ["Reconciling", "Stalled"]);
  });

  it("are not due after a minute for a failure of the former spec, which says nothing of the present one", () => {
    const [former] = conditionsOf(["RolledOut", "False", "WorkloadNotFound"]);
    assert.ok(former !== undefined);
    const object = { metadata: { generation: 3 }, status: { conditions: [{ ...former, observedGeneration: 2 }] } };
    const conditions = withProgress(object, object.status.conditions, NOW);
    assert.equal(untilStalled({ conditions }, new Date(NOW.getTime() + STALLED_AFTER_MS)), undefined);
  });

  it("are absent while a user suspends the object or its rollout", () => {
    assert.deepEqual(derivedFrom(["Ready", "Unknown", "Suspended"], ["RolledOut", "False", "RollingOut"]), []);
    assert.deepEqual(derivedFrom(["Accepted", "True", "Accepted"], ["Ready", "Unknown", "Suspended"]), []);
    assert.deepEqual(derivedFrom(["Ready", "True", "Synced"], ["RolledOut", "False", "Suspended"]), []);
  });

  it("ignore a part of the installation that is missing", () => {
    assert.deepEqual(derivedFrom(["Ready", "True", "Synced"], ["InstallationComplete", "False", "PolicyMissing"]), []);
  });

  describe("with a problem that a user must fix", () => {
    const [start, end] = [Date.parse("2026-01-02T03:04:05Z"), Date.parse("2026-01-02T03:04:05Z") + STALLED_AFTER_MS];
    /** The progress condition after statuses at these times, each with a reason and a generation. */
    const following = (...statuses: readonly Reported[]) => {
      let conditions: Condition[] = [];
      for (const [ms, reason, generation = 3] of statuses) {
        const given = conditionsOf(["Ready", "False", reason]);
        conditions = withProgress({ metadata: { generation }, status: { conditions } }, given, new Date(ms));
      }
      const { type, reason, lastTransitionTime } = conditions[1] ?? {};
      return { type, reason, since: Date.parse(lastTransitionTime ?? ""), conditions };
    };

    it("are Stalled when the reason has stayed for a minute, and keep the time without a change", () => {
      const last = following([start, "Forbidden"], [end - 1, "Forbidden"]);
      assert.deepEqual([last.type, last.since], ["Reconciling", start]);
      const stalled = following([start, "Forbidden"], [end, "Forbidden"]);
      assert.deepEqual([stalled.type, stalled.since], ["Stalled", end]);
      const still = following([start, "Forbidden"], [end, "Forbidden"], [end + 1e6, "Forbidden"]);
      assert.deepEqual(still.conditions, stalled.conditions);
    });

    it("start again with each progress: another reason, another spec, or what ends by itself in between", () => {
      const progress = [
        following([start, "Forbidden"], [end, "SourceNotFound"]),
        following([start, "Forbidden"], [end, "Forbidden", 4]),
        following([start, "Forbidden"], [end, "Forbidden"], [end, "Forbidden", 4]),
        following([start, "Forbidden"], [start + 1_000, "Unavailable"], [end, "Forbidden"]),
        following([start, "RollingOut"], [end, "WorkloadNotFound"]),
      ];
      for (const { type, since } of progress) assert.deepEqual([type, since], ["Reconciling", end]);
      assert.equal(following([start, "Forbidden"], [end, "InvalidPath"]).type, "Stalled");
    });

    it("do not wait longer than a minute if the clock was ahead before", () => {
      const { type, since } = following([end + 3_600_000, "Forbidden"], [start, "Forbidden"]);
      assert.deepEqual([type, since], ["Reconciling", start]);
    });

    it("say when the object becomes Stalled", () => {
      const until = (ms: number, ...statuses: readonly Reported[]) =>
        untilStalled(following(...statuses), new Date(ms));
      assert.equal(until(start + 10_000, [start, "Forbidden"]), STALLED_AFTER_MS - 10_000);
      assert.equal(until(end + 1, [start, "Forbidden"]), 0);
      assert.equal(until(end, [start, "Forbidden"], [end, "Forbidden"]), undefined);
      assert.equal(until(start, [start, "VaultSealed"]), undefined);
      assert.equal(untilStalled(undefined, new Date(start)), undefined);
    });
  });

  it("never become Stalled for what ends by itself", () => {
    const endless = [...Object.keys(catalogue), ...STATE_REASONS].filter((each) => fixedBy(each) === "Itself");
    assert.ok(endless.includes("Unavailable") && endless.includes("VaultSealed") && endless.includes("RollingOut"));
    for (const reason of endless) {
      const given = conditionsOf(["Ready", "False", reason]);
      const metadata = { generation: 3 };
      const conditions = withProgress({ metadata }, given, NOW);
      const later = withProgress({ metadata, status: { conditions } }, given, LATER);
      // Suspended has neither.
      assert.notEqual(later[1]?.type, "Stalled", reason);
    }
  });
});
