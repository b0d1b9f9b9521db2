/** What is said of an object that can't be made, as it was named or selected. */
import assert from "node:assert/strict";
import { Problem, UnintendedTarget } from "../../../src/apimachinery/problem.ts";
import { failed } from "../../../src/targets/create.ts";

const record = { apiVersion: "v1", kind: "Secret", name: "blog", reason: "Pending" };
const notMeant = new UnintendedTarget("TargetNotFound", "namespace a is being deleted");

describe("an object that can't be created", () => {
  it("is a problem when it is named", () => {
    assert.deepEqual(failed(record, notMeant), { record, problem: notMeant });
  });

  it("is something to know when it was selected, and nobody can have meant it", () => {
    const selected = { ...record, selected: true as const };
    assert.deepEqual(failed(selected, notMeant), { record: selected, note: "namespace a is being deleted" });
    const ending = new UnintendedTarget("TargetNotFound", "namespace a is being deleted", "Slow");
    assert.ok(
      (failed(selected, ending).requeueAfterMs ?? 0) > 0,
      "it is looked at again: nobody watches a listed namespace",
    );
    const problem = new Problem("Conflict", "it is another's");
    assert.deepEqual(failed(selected, problem), { record: selected, problem });
  });
});
