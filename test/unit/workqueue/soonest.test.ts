/** Which of several results of one key decides its retry. */
import assert from "node:assert/strict";
import { soonest } from "../../../src/workqueue/soonest.ts";

describe("the result of several", () => {
  it("is the backoff with the lowest limit, which no shorter time exceeds", () => {
    const slow = { retry: "backoff", mostMs: 30_000 } as const;
    assert.deepEqual(soonest([{ ...slow, mostMs: 60_000 }, { retry: "never" }, slow]), slow);
    assert.deepEqual(soonest([slow, { retry: "backoff" }, { retry: "after", ms: 1 }]), { retry: "backoff" });
    assert.deepEqual(soonest([slow, { retry: "after", ms: 500 }]), { retry: "backoff", mostMs: 500 });
  });

  it("is otherwise the shortest time, or none", () => {
    const wait = (ms: number) => ({ retry: "after", ms }) as const;
    assert.deepEqual(soonest([wait(2), { retry: "never" }, wait(1)]), wait(1));
    assert.deepEqual(soonest([{ retry: "never" }]), { retry: "never" });
  });
});
