/** When a binding is requeued, and under which rate limit. */
import assert from "node:assert/strict";
import { Problem, type Reason } from "../../../../src/apimachinery/problem.ts";
import { requeueResult } from "../../../../src/controllers/binding/requeue.ts";
import { bindingOf } from "../../objects.ts";

const binding = bindingOf({ metadata: { namespace: "team" } });
const again = (...all: (Reason | number)[]) =>
  requeueResult(
    binding,
    all.map((each) => (typeof each === "number" ? { requeueAfterMs: each } : { problem: new Problem(each, "wrong") })),
  );

describe("a binding", () => {
  it("is done when all is well, or only an edit or a change that is watched can help", () => {
    assert.deepEqual(again(), { retry: "never" });
    assert.deepEqual(again("InvalidTemplate", "KeyNotFound", "Conflict"), { retry: "never" });
  });

  it("is tried again with all else of its namespace for a right or a kind, and every half minute for rules", () => {
    assert.deepEqual(again("KindNotFound", "Rejected"), { retry: "backoff", rateLimitGroup: "team" });
    assert.deepEqual(again("Forbidden", 100), { retry: "backoff", rateLimitGroup: "team" });
    assert.deepEqual(again("Rejected", "InvalidTemplate"), { retry: "after", ms: 30_000, rateLimitGroup: "team" });
  });

  it("waits for nobody when the API server failed", () => {
    assert.deepEqual(again("Forbidden", "Unavailable"), { retry: "backoff" });
  });

  it("is looked at when it asked for, or earlier", () => {
    assert.deepEqual(again(500, 100), { retry: "after", ms: 100 });
    assert.deepEqual(again("Rejected", 60_000), { retry: "after", ms: 30_000 });
  });
});
