/** When a binding is looked at again, and among whom. */
import assert from "node:assert/strict";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { Problem, type Reason } from "../../../../src/apimachinery/problem.ts";
import { whenAgain } from "../../../../src/controllers/binding/requeue.ts";

const binding = { metadata: { namespace: "team" } } as SecretBinding;
const again = (...all: (Reason | number)[]) =>
  whenAgain(
    binding,
    all.map((each) => (typeof each === "number" ? { againMs: each } : { problem: new Problem(each, "wrong") })),
  );

describe("a binding", () => {
  it("is done when all is well, or only an edit or a change that is watched can help", () => {
    assert.deepEqual(again(), { retry: "never" });
    assert.deepEqual(again("InvalidTemplate", "KeyNotFound", "Conflict"), { retry: "never" });
  });

  it("is tried again with all else of its namespace for a right or a kind, and every half minute for rules", () => {
    assert.deepEqual(again("KindNotFound", "Rejected"), { retry: "backoff", among: "team" });
    assert.deepEqual(again("Forbidden", 100), { retry: "backoff", among: "team" });
    assert.deepEqual(again("Rejected", "InvalidTemplate"), { retry: "after", ms: 30_000, among: "team" });
  });

  it("waits for nobody when the API server failed", () => {
    assert.deepEqual(again("Forbidden", "Unavailable"), { retry: "backoff" });
  });

  it("is looked at when it asked for, or earlier", () => {
    assert.deepEqual(again(500, 100), { retry: "after", ms: 100 });
    assert.deepEqual(again("Rejected", 60_000), { retry: "after", ms: 30_000 });
  });
});
