/** How long a rollout waits: for its binding's settings, for values that keep changing, and for the rollout before. */
import assert from "node:assert/strict";
import type { Pending, RolloutSpec } from "../../../../src/api/rollout.ts";
import { blockOf } from "../../../../src/rollout/decide/pace.ts";
import { rolloutSpecOf } from "../../objects.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
const at = (seconds: number) => new Date(START + seconds * 1_000).toISOString();
const noted = (times: Partial<Pending> = {}): Pending => ({
  firstChangeTime: at(0),
  lastChangeTime: at(0),
  reason: "",
  message: "",
  ...times,
});

/** The reason why it waits after so many seconds, and until when, in seconds. */
function held(
  pace: Partial<RolloutSpec>,
  pending: Pending,
  seconds: number,
  last?: string,
): [string, number] | undefined {
  const hold = blockOf(rolloutSpecOf(pace), pending, last, START + seconds * 1_000);
  return hold && [hold.reason, seconds + Math.floor((hold.requeueAfterMs ?? 0) / 1_000)];
}

describe("the pace of a rollout", () => {
  it("does not wait by default", () => assert.equal(held({}, noted(), 0), undefined));

  it("waits until the values stop changing, and no longer than maxDebounce, which defaults to ten times debounce", () => {
    assert.deepEqual(held({ debounce: "10s" }, noted(), 0), ["Debounce", 10]);
    assert.deepEqual(held({ debounce: "10s" }, noted({ lastChangeTime: at(95) }), 95), ["Debounce", 100]);
    assert.equal(held({ debounce: "10s" }, noted({ lastChangeTime: at(95) }), 100), undefined);
    const pace = { debounce: "10s", maxDebounce: "30s" };
    assert.deepEqual(held(pace, noted({ lastChangeTime: at(25) }), 25), ["Debounce", 30]);
  });

  it("restarts no more often for a value that keeps changing while it rolls out", () => {
    const pace = { debounce: "10s", maxDebounce: "30s" };
    const underWay = (changed: number) =>
      noted({ startTime: at(30), lastRestartTime: at(30), lastChangeTime: at(changed) });
    assert.deepEqual(held(pace, underWay(31), 31), ["Debounce", 41]);
    assert.deepEqual(held(pace, underWay(55), 55), ["Debounce", 60]);
    assert.equal(held(pace, underWay(60), 60), undefined);
    assert.equal(held({}, underWay(31), 31), undefined);
  });

  it("keeps minInterval between the starts of two rollouts, and does not delay one that has begun", () => {
    const last = at(-60);
    assert.deepEqual(held({ minInterval: "5m" }, noted(), 0, last), ["MinInterval", 240]);
    assert.equal(held({ minInterval: "5m" }, noted({ startTime: at(0), lastRestartTime: at(0) }), 1, at(0)), undefined);
    assert.equal(held({ minInterval: "5m" }, noted(), 240, last), undefined);
  });

  it("waits while it is suspended, whatever else is set", () => {
    const hold = blockOf(rolloutSpecOf({ suspend: true, debounce: "1s" }), noted(), undefined, START);
    assert.equal(hold?.reason, "Suspended");
    assert.equal(hold?.requeueAfterMs, undefined);
  });

  it("reports a mistake in a duration with its field", () => {
    assert.throws(() => held({ debounce: "5" }, noted(), 0), {
      message: /spec\.rollout\.debounce: "5" is not a duration/,
    });
  });
});
