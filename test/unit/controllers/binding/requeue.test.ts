/** When a binding is requeued, and under which rate limit. */
import assert from "node:assert/strict";
import { STALLED_AFTER_MS } from "../../../../src/api/progress.ts";
import { Problem, type Reason } from "../../../../src/apimachinery/problem.ts";
import { orWhenStalled, requeueResult } from "../../../../src/controllers/binding/requeue.ts";
import type { WorkResult } from "../../../../src/workqueue/work-queue.ts";

const again = (...all: (Reason | number)[]) =>
  requeueResult(
    "team",
    all.map((each) => (typeof each === "number" ? { requeueAfterMs: each } : { problem: new Problem(each, "wrong") })),
  );

/** A status with that condition since 20 s. */
const statusWith = (type: string, reason: string) => {
  const since = "2026-01-02T03:03:45Z";
  return { conditions: [{ type, status: "True" as const, reason, message: "", lastTransitionTime: since }] };
};

describe("a binding", () => {
  it("is done if there is no problem, or only an edit or a watched change can help", () => {
    assert.deepEqual(again(), { retry: "never" });
    assert.deepEqual(again("InvalidTemplate", "KeyNotFound", "Conflict"), { retry: "never" });
  });

  it("is retried with the rate limit of its namespace for a permission or a kind, and every 30 s for rules", () => {
    assert.deepEqual(again("KindNotFound", "Rejected"), { retry: "backoff", rateLimitGroup: "team" });
    assert.deepEqual(again("Forbidden", 100), { retry: "backoff", rateLimitGroup: "team" });
    assert.deepEqual(again("Rejected", "InvalidTemplate"), { retry: "after", ms: 30_000, rateLimitGroup: "team" });
  });

  it("is retried without the rate limit if the API server failed", () => {
    assert.deepEqual(again("Forbidden", "Unavailable"), { retry: "backoff" });
  });

  it("is retried at first soon and then every 30 s if a webhook fails, unless something else is due earlier", () => {
    const slowing = { retry: "backoff", mostMs: 30_000, rateLimitGroup: "team" };
    assert.deepEqual(again("WebhookFailed", "Rejected"), slowing);
    assert.deepEqual(again("ConversionFailed", 60_000), slowing);
    assert.deepEqual(again("WebhookFailed", 2_000, 100_000), { ...slowing, mostMs: 2_000 });
    assert.deepEqual(again("WebhookFailed", "Forbidden"), { retry: "backoff", rateLimitGroup: "team" });
  });

  it("is requeued after the requested time, or earlier", () => {
    assert.deepEqual(again(500, 100), { retry: "after", ms: 100 });
    assert.deepEqual(again("Rejected", 60_000), { retry: "after", ms: 30_000 });
  });

  it("is requeued when it becomes Stalled, unless a retry comes before", () => {
    const now = new Date("2026-01-02T03:04:05Z");
    const ms = STALLED_AFTER_MS - 20_000;
    const waiting = statusWith("Reconciling", "Forbidden");
    assert.deepEqual(orWhenStalled({ retry: "never" }, waiting, now), { retry: "after", ms });
    assert.deepEqual(orWhenStalled({ retry: "after", ms: ms + 1 }, waiting, now), { retry: "after", ms });
    const retries: WorkResult[] = [{ retry: "backoff" }, { retry: "after", ms, rateLimitGroup: "team" }];
    for (const each of retries) assert.equal(orWhenStalled(each, waiting, now), each);
    for (const other of [undefined, statusWith("Stalled", "Forbidden"), statusWith("Reconciling", "VaultSealed")])
      assert.deepEqual(orWhenStalled({ retry: "never" }, other, now), { retry: "never" });
  });
});
