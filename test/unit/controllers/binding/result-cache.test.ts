/** Which results of targets are remembered, and when the targets must be reconciled again. */
import assert from "node:assert/strict";
import type { Version } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import type { ObservedState } from "../../../../src/controllers/binding/observed-state.ts";
import { ResultCache } from "../../../../src/controllers/binding/result-cache.ts";
import type { TargetWithRecord } from "../../../../src/targets/records.ts";
import { finish } from "../../../../src/workqueue/cpu-scheduler.ts";
import { targetOf } from "../../objects.ts";
import { ObservedStateFixture } from "../../observed-state.ts";
import { CONFIGMAPS } from "../../resources.ts";

const HERE = { resource: CONFIGMAPS, namespace: "team", name: "a" };
const each: TargetWithRecord = {
  target: targetOf({ fields: [] }),
  ref: HERE,
  record: { apiVersion: "v1", kind: "ConfigMap", namespace: "team", name: "a", reason: "Synced" },
};
const version = (uid: string, resourceVersion: string): Version => ({ uid, resourceVersion, generation: undefined });

const OBSERVED = new ObservedStateFixture().look();

/** A view in which the watch shows that version, and nothing else matters. */
function showing(seen: Version | undefined): ObservedState {
  const shown: ObservedState["shown"] = (_ref, known) =>
    seen && known?.uid === seen.uid && Number(known.resourceVersion) > Number(seen.resourceVersion) ? known : seen;
  const stateOf: ObservedState["stateOf"] = (_target, _ref, _record, _isSynced, at) => JSON.stringify(at ?? "none");
  return { ...OBSERVED, shown, stateOf, fingerprint: () => "" };
}

/**
 * Whether the result of a target is used again. `applied`: the version after the write; `before` and `now`: what the watch showed
 * then and shows now.
 */
function isSettled(applied: Version, before: Version | undefined, now: Version | undefined): boolean {
  const settled = new ResultCache();
  const outcome = { record: each.record, applied: { ref: HERE, version: applied } };
  finish(settled.set("team/b", showing(before), [each], [outcome], undefined));
  return finish(settled.resultsOf("team/b", showing(now), [each])).has(each);
}

describe("a target with a cached result", () => {
  const made = version("u", "5");

  it("is not reconciled while the watch shows the known version, or an older one", () => {
    assert.ok(isSettled(made, version("u", "4"), made));
    assert.ok(isSettled(made, version("u", "4"), version("u", "4")));
  });

  it("is reconciled after it changed", () => {
    assert.ok(!isSettled(made, version("u", "4"), version("u", "6")));
    assert.ok(!isSettled(made, version("u", "4"), version("v", "6")));
  });

  it("is reconciled if it was deleted before the watch showed its creation", () => {
    assert.ok(!isSettled(made, undefined, undefined));
    assert.ok(!isSettled(made, version("former", "3"), version("former", "3")));
  });

  it("is reconciled again if a retry may help", () => {
    const settled = new ResultCache();
    for (const [problem, remembered] of [
      [new Problem("Conflict", "taken"), true],
      [new Problem("SourceNotFound", "gone"), true],
      [new Problem("Forbidden", "may not"), false],
      [new Problem("Rejected", "no"), false],
      [new Problem("InvalidValue", "a rule of its schema"), false],
    ] as const) {
      finish(settled.set("team/b", showing(made), [each], [{ record: each.record, problem }], undefined));
      assert.equal(finish(settled.resultsOf("team/b", showing(made), [each])).has(each), remembered, problem.reason);
    }
    finish(settled.set("team/b", showing(made), [each], [{ record: each.record, requeueAfterMs: 1_000 }], undefined));
    assert.equal(finish(settled.resultsOf("team/b", showing(made), [each])).size, 0);
  });
});
