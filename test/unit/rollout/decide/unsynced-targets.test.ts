/** Which workloads wait for a target that does not hold the new values yet. */
import assert from "node:assert/strict";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { unsyncedTargets } from "../../../../src/rollout/decide/unsynced-targets.ts";

const problem = new Problem("Forbidden", "it may not patch it");
const one = (namespace: string, selected?: true) => ({
  record: { namespace, ...(selected && { selected }) },
  problem,
});

describe("a target without the new values", () => {
  it("holds back all workloads if it is named, or in the namespace of the binding", () => {
    for (const each of [one("other"), one("registry", true), { problem }])
      assert.equal(unsyncedTargets("registry", undefined, [each]).everywhere?.reason, "TargetsNotSynced");
    assert.match(unsyncedTargets("registry", problem, []).everywhere?.message ?? "", /it may not patch it/);
  });

  it("holds back those of its namespace if it is one of many", () => {
    const { everywhere, namespaces } = unsyncedTargets("registry", undefined, [
      one("other", true),
      { namespace: "third", problem },
      { record: { namespace: "fine", selected: true } },
    ]);
    assert.equal(everywhere, undefined);
    assert.deepEqual([...namespaces.keys()], ["other", "third"]);
  });
});
