/** How long a rollout is held back: by its binding, by values that do not rest, and by the one before. */
import assert from "node:assert/strict";
import type { Pending, RolloutSpec } from "../../../../src/api/rollout.ts";
import { holdOf } from "../../../../src/rollout/decide/pace.ts";

const START = Date.parse("2026-11-21T10:00:00.000Z");
const at = (seconds: number) => new Date(START + seconds * 1_000).toISOString();
const spec = (pace: Partial<RolloutSpec>): RolloutSpec =>
  ({ stamp: { annotation: "a", value: "Revision" }, timeout: "10m", ...pace }) as RolloutSpec;
const noted = (times: Partial<Pending> = {}): Pending => ({
  since: at(0),
  changed: at(0),
  reason: "",
  message: "",
  ...times,
});

/** The reason for which it is held back after so many seconds, and until when, in seconds. */
function held(
  pace: Partial<RolloutSpec>,
  pending: Pending,
  seconds: number,
  last?: string,
): [string, number] | undefined {
  const hold = holdOf(spec(pace), pending, last, START + seconds * 1_000);
  return hold && [hold.reason, seconds + Math.floor((hold.againMs ?? 0) / 1_000)];
}

describe("the pace of a rollout", () => {
  it("is at once, unless something else is said", () => assert.equal(held({}, noted(), 0), undefined));

  it("waits until the values have rested, and no longer than maxDebounce, ten times debounce unless given", () => {
    assert.deepEqual(held({ debounce: "10s" }, noted(), 0), ["Debounce", 10]);
    assert.deepEqual(held({ debounce: "10s" }, noted({ changed: at(95) }), 95), ["Debounce", 100]);
    assert.equal(held({ debounce: "10s" }, noted({ changed: at(95) }), 100), undefined);
    const pace = { debounce: "10s", maxDebounce: "30s" };
    assert.deepEqual(held(pace, noted({ changed: at(25) }), 25), ["Debounce", 30]);
  });

  it("restarts no oftener for a value that goes on changing while it rolls out", () => {
    const pace = { debounce: "10s", maxDebounce: "30s" };
    const underWay = (changed: number) => noted({ began: at(30), restarted: at(30), changed: at(changed) });
    assert.deepEqual(held(pace, underWay(31), 31), ["Debounce", 41]);
    assert.deepEqual(held(pace, underWay(55), 55), ["Debounce", 60]);
    assert.equal(held(pace, underWay(60), 60), undefined);
    assert.equal(held({}, underWay(31), 31), undefined);
  });

  it("keeps minInterval between the beginnings of two rollouts, and holds none back that has begun", () => {
    const last = at(-60);
    assert.deepEqual(held({ minInterval: "5m" }, noted(), 0, last), ["MinInterval", 240]);
    assert.equal(held({ minInterval: "5m" }, noted({ began: at(0), restarted: at(0) }), 1, at(0)), undefined);
    assert.equal(held({ minInterval: "5m" }, noted(), 240, last), undefined);
  });

  it("is none while it is suspended, whatever else holds", () => {
    const hold = holdOf(spec({ suspend: true, debounce: "1s" }), noted(), undefined, START);
    assert.equal(hold?.reason, "Suspended");
    assert.equal(hold?.againMs, undefined);
  });

  it("has a mistake in a duration told with its field", () => {
    assert.throws(() => held({ debounce: "5" }, noted(), 0), {
      message: /spec\.rollout\.debounce: "5" is no duration/,
    });
  });
});
