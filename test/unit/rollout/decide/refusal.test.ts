/** Why a workload is not restarted at all. */
import assert from "node:assert/strict";
import type { RolloutSpec } from "../../../../src/api/rollout.ts";
import { FieldPath } from "../../../../src/apimachinery/field-path.ts";
import { JOBS } from "../../../../src/apimachinery/resources.ts";
import { refusalOf } from "../../../../src/rollout/decider.ts";
import type { Progress } from "../../../../src/workloads/progress.ts";
import type { Workload } from "../../../../src/workloads/workload.ts";
import { dependentOf, rolloutSpecOf } from "../../objects.ts";
import { WIDGETS } from "../../resources.ts";

const STRIMZI = 'metadata.annotations["strimzi.io/manual-rolling-update"]';

function why(
  workload: Partial<Workload>,
  spec: Partial<RolloutSpec> = {},
  restartPath?: string,
  isUnbudgeted = false,
  resource = WIDGETS,
) {
  const restart = restartPath === undefined ? {} : { stampAt: FieldPath.parse(restartPath), isRestartField: true };
  return refusalOf(rolloutSpecOf(spec), dependentOf({ ref: { resource }, workload, ...restart }), isUnbudgeted);
}

describe("a workload is not restarted", () => {
  it("without a readiness probe or a PodDisruptionBudget, if that is required", () => {
    assert.equal(why({ unprobed: ["app"] }), undefined);
    assert.match(
      why({ unprobed: ["app"] }, { requireReadinessProbe: true }) ?? "",
      /no readiness probe in app; add one$/,
    );
    assert.equal(why({}, { requireReadinessProbe: true }), undefined);
    assert.equal(why({}, {}, undefined, true), undefined);
    const without = why({}, { requireDisruptionBudget: true }, undefined, true);
    assert.match(without ?? "", /no PodDisruptionBudget selects the pods of core; add one$/);
    assert.equal(why({}, { requireDisruptionBudget: true }), undefined);
  });

  it("whose template is in another object, unless it has a restart field", () => {
    assert.match(why({ templateElsewhere: true }) ?? "", /with restartPath: spec\.restartAt$/);
    assert.equal(why({ templateElsewhere: true }, {}, "spec.restartAt"), undefined);
  });

  it("that is a Job, while it is running", () => {
    const progress = (state: Progress["state"]) => ({ progress: { state, message: "" } });
    const job = (state: Progress["state"]) => why(progress(state), {}, undefined, false, JOBS);
    assert.match(job("Rolling") ?? "", /^core is running; /);
    for (const state of ["Done", "Failed"] as const) assert.equal(job(state), undefined);
    assert.equal(why(progress("Rolling")), undefined);
  });

  it("whose restart field still has the value true of its last restart", () => {
    assert.match(why({ restart: "true" }, {}, STRIMZI) ?? "", /restarting by .* removed that$/);
    for (const workload of [{}, { restart: "false" }]) assert.equal(why(workload, {}, STRIMZI), undefined);
    assert.equal(why({ restart: "true" }, {}, "spec.restartedAt"), undefined);
  });
});
