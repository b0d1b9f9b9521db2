/** When a workload counts as rolled out: as `kubectl rollout status` judges it, and Argo's controller its own kind. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { type Progress, progressOf } from "../../../src/workloads/progress.ts";

type Fields = Record<string, unknown>;

function workload(type: string, spec: Fields, status: Fields, generation = 2): KubeObject {
  const [, apiVersion = "", kind = ""] = /^(.*) (.*)$/.exec(type) ?? [];
  const metadata = { name: "web", namespace: "registry", uid: "1", resourceVersion: "7", generation };
  return { apiVersion, kind, metadata, spec, status };
}

type Case = [spec: Fields, status: Fields, state: Progress["state"], message: RegExp];

const seen = { observedGeneration: 2 };
const UNSEEN = /has not observed the change/;
const rollingUpdate = (partition: number) => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } },
});
const onDelete = { updateStrategy: { type: "OnDelete" } };
const stuck = { conditions: [{ type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }] };
const ready = (status: string, more: Fields = {}) => ({ conditions: [{ type: "Ready", status, ...more }] });

const cases: Record<string, Record<string, Case>> = {
  "apps/v1 Deployment": {
    "that its controller has never seen": [{ replicas: 3 }, {}, "Rolling", UNSEEN],
    "whose change its controller has not seen": [
      { replicas: 1 },
      { observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
      "Rolling",
      UNSEEN,
    ],
    "with pods that are not updated": [
      { replicas: 3 },
      { ...seen, replicas: 4, updatedReplicas: 2, availableReplicas: 4 },
      "Rolling",
      /^2 of 3 replicas are updated$/,
    ],
    "with old pods": [
      { replicas: 3 },
      { ...seen, replicas: 4, updatedReplicas: 3, availableReplicas: 4 },
      "Rolling",
      /^1 old replica has not ended/,
    ],
    "with updated pods that are not available": [
      { replicas: 3 },
      { ...seen, replicas: 3, updatedReplicas: 3, availableReplicas: 1 },
      "Rolling",
      /^1 of 3 updated replicas are available$/,
    ],
    "that makes no progress": [
      { replicas: 3 },
      { ...seen, ...stuck, replicas: 3 },
      "Failed",
      /progressDeadlineSeconds/,
    ],
    "that made no progress before its last change": [
      { replicas: 3 },
      { observedGeneration: 1, ...stuck, replicas: 3 },
      "Rolling",
      UNSEEN,
    ],
    "of no pods": [{ replicas: 0 }, seen, "Done", /rolled out/],
    "that is done": [
      { replicas: 3 },
      { ...seen, replicas: 3, updatedReplicas: 3, availableReplicas: 3 },
      "Done",
      /^rolled out$/,
    ],
  },
  "apps/v1 StatefulSet": {
    "that its controller has never seen": [{ replicas: 0, ...rollingUpdate(0) }, {}, "Rolling", UNSEEN],
    "whose change its controller has not seen": [
      { replicas: 1, ...rollingUpdate(0) },
      { observedGeneration: 1, readyReplicas: 1, updatedReplicas: 1 },
      "Rolling",
      UNSEEN,
    ],
    "with pods that are not ready": [
      { replicas: 3, ...rollingUpdate(0) },
      { ...seen, readyReplicas: 2, updatedReplicas: 3 },
      "Rolling",
      /^2 of 3 pods are ready$/,
    ],
    "with pods that are not updated": [
      { replicas: 3, ...rollingUpdate(0) },
      { ...seen, readyReplicas: 3, updatedReplicas: 1 },
      "Rolling",
      /^1 of 3 pods are updated$/,
    ],
    "with pods above its partition that are not updated": [
      { replicas: 3, ...rollingUpdate(1) },
      { ...seen, readyReplicas: 3, updatedReplicas: 1 },
      "Rolling",
      /^1 of 2 pods are updated, .* held back/,
    ],
    "whose pods above its partition are updated": [
      { replicas: 3, ...rollingUpdate(1) },
      { ...seen, readyReplicas: 3, updatedReplicas: 2, currentRevision: "a", updateRevision: "b" },
      "Rolling",
      /^2 of 3 pods are updated, .* held back/,
    ],
    "with a partition, whose pods are all updated": [
      { replicas: 3, ...rollingUpdate(1) },
      { ...seen, readyReplicas: 3, updatedReplicas: 3 },
      "Done",
      /^rolled out$/,
    ],
    "with pods that are not ready for long enough": [
      { replicas: 3, minReadySeconds: 5, ...rollingUpdate(0) },
      { ...seen, readyReplicas: 3, updatedReplicas: 3, availableReplicas: 2 },
      "Rolling",
      /^2 of 3 pods are available$/,
    ],
    "with pods that are too many": [
      { replicas: 1, ...rollingUpdate(0) },
      { ...seen, replicas: 3, readyReplicas: 3, updatedReplicas: 3 },
      "Rolling",
      /^2 pods have not ended/,
    ],
    "whose partition holds back all pods, and more": [
      { replicas: 3, ...rollingUpdate(5) },
      { ...seen, readyReplicas: 3 },
      "Rolling",
      /^0 of 3 pods are updated/,
    ],
    "without a partition, between two revisions": [
      { replicas: 3, updateStrategy: { type: "RollingUpdate" } },
      { ...seen, readyReplicas: 3, updatedReplicas: 2, currentRevision: "a", updateRevision: "b" },
      "Rolling",
      /^2 of 3 pods are updated$/,
    ],
    "without a partition, that is done": [
      { replicas: 3, updateStrategy: { type: "RollingUpdate" } },
      { ...seen, readyReplicas: 3, currentRevision: "b", updateRevision: "b" },
      "Done",
      /^rolled out$/,
    ],
    "whose pods are replaced when they are deleted": [
      { replicas: 3, ...onDelete },
      { ...seen, readyReplicas: 3, currentRevision: "a", updateRevision: "b" },
      "Rolling",
      /^0 of 3 .*replaced when they are deleted/,
    ],
    "whose pods were deleted and replaced": [
      { replicas: 3, ...onDelete },
      { ...seen, readyReplicas: 3, updatedReplicas: 3 },
      "Done",
      /^rolled out$/,
    ],
    "that is done": [
      { replicas: 3, ...rollingUpdate(0) },
      { ...seen, readyReplicas: 3, updatedReplicas: 3 },
      "Done",
      /^rolled out$/,
    ],
  },
  "apps/v1 DaemonSet": {
    "that its controller has never seen": [rollingUpdate(0), {}, "Rolling", UNSEEN],
    "with pods that are not updated": [
      {},
      { ...seen, desiredNumberScheduled: 4, updatedNumberScheduled: 1, numberAvailable: 4 },
      "Rolling",
      /^1 of 4 pods are updated$/,
    ],
    "with pods that are not available": [
      {},
      { ...seen, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 3 },
      "Rolling",
      /^3 of 4 updated pods are available$/,
    ],
    "whose pods are replaced when they are deleted": [
      onDelete,
      { ...seen, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2 },
      "Rolling",
      /^1 of 2 .*replaced when they are deleted/,
    ],
    "without nodes": [{}, seen, "Done", /^rolled out$/],
    "that is done": [
      {},
      { ...seen, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberAvailable: 4 },
      "Done",
      /^rolled out$/,
    ],
  },
  "argoproj.io/v1alpha1 Rollout": {
    "that its controller has never seen": [{ replicas: 3 }, {}, "Rolling", UNSEEN],
    "whose change its controller has not seen": [{}, { observedGeneration: "1", phase: "Healthy" }, "Rolling", UNSEEN],
    "that is rolling out": [
      { replicas: 3 },
      { observedGeneration: "2", phase: "Progressing", updatedReplicas: 1 },
      "Rolling",
      /^1 of 3 replicas are updated$/,
    ],
    "that waits to be promoted": [
      {},
      {
        observedGeneration: "2",
        phase: "Paused",
        controllerPause: true,
        pauseConditions: [{ reason: "CanaryPauseStep" }],
      },
      "Rolling",
      /kubectl argo rollouts promote web/,
    ],
    "that was just promoted": [
      {},
      { observedGeneration: "2", phase: "Paused", controllerPause: true },
      "Rolling",
      UNSEEN,
    ],
    "that a user paused": [{ paused: true }, { observedGeneration: "2", phase: "Paused" }, "Rolling", /spec\.paused/],
    "that was aborted": [{}, { observedGeneration: "2", phase: "Degraded" }, "Failed", /Degraded/],
    "that is done": [{}, { observedGeneration: "2", phase: "Healthy" }, "Done", /^rolled out$/],
    "that is done, of a controller that counts no generations": [
      {},
      { observedGeneration: "6b79c4d8f5", phase: "Healthy" },
      "Done",
      /^rolled out$/,
    ],
  },
  "batch/v1 Job": {
    "that runs": [{ completions: 3 }, { succeeded: 1 }, "Rolling", /^1 of 3 pods have succeeded$/],
    "that failed": [{}, { conditions: [{ type: "Failed", status: "True" }] }, "Failed", /failed/],
    "that is complete": [{}, { conditions: [{ type: "Complete", status: "True" }] }, "Done", /complete/],
  },
  "batch/v1 CronJob": {
    "without an observed generation": [{ schedule: "0 0 * * *" }, {}, "Done", /rolled out/],
  },
  "example.com/v1 Database": {
    "without a status": [{ replicas: 3 }, {}, "Done", /^rolled out$/],
    "whose change its controller has not seen": [{}, { observedGeneration: 1, ...ready("True") }, "Rolling", UNSEEN],
    "that was ready before its change": [
      {},
      { ...seen, ...ready("True", { observedGeneration: 1 }) },
      "Rolling",
      UNSEEN,
    ],
    "that is not ready": [{}, { ...seen, ...ready("False") }, "Rolling", /Ready is not True/],
    "of which it is not known whether it is available": [
      {},
      { ...seen, conditions: [{ type: "Available", status: "Unknown" }] },
      "Rolling",
      /Available is not True/,
    ],
    "that is ready": [{}, { ...seen, ...ready("True", { observedGeneration: 2 }) }, "Done", /^rolled out$/],
    "whose pods are replaced when they are deleted": [onDelete, seen, "Done", /replaced when they are deleted/],
  },
};

describe("the progress of a workload", () => {
  for (const [type, theirs] of Object.entries(cases)) {
    for (const [what, [spec, status, state, message]] of Object.entries(theirs)) {
      it(`is ${state} for a ${type.split(" ")[1]} ${what}`, () => {
        const progress = progressOf(workload(type, spec, status));
        assert.equal(progress.state, state, progress.message);
        assert.match(progress.message, message);
      });
    }
  }

  it("repeats no free text of a status", () => {
    const words = "only-a-controller-says-this";
    const degraded = { phase: "Degraded", message: words, observedGeneration: "2" };
    const conditions = ["Progressing", "Ready", "Available", "Failed"].map((type) => ({
      type,
      status: "False",
      reason: words,
      message: words,
    }));
    for (const type of Object.keys(cases)) {
      for (const status of [degraded, { ...seen, conditions }, { ...degraded, phase: words }])
        assert.ok(!progressOf(workload(type, {}, status)).message.includes(words), type);
    }
  });

  const count = fc.option(fc.nat(4), { nil: undefined });
  /** kubectl's rules for a Deployment, in the order of its source. */
  it("of a Deployment is as kubectl reports it, whatever its counts are", () => {
    const fields = fc.record({
      replicas: fc.nat(4),
      generation: fc.nat(3),
      status: fc.record(
        { observedGeneration: fc.nat(3), replicas: count, updatedReplicas: count, availableReplicas: count },
        { requiredKeys: [] },
      ),
      isStuck: fc.boolean(),
    });
    fc.assert(
      fc.property(fields, ({ replicas, generation, status, isStuck }) => {
        const all = { observedGeneration: 0, ...status, ...(isStuck && stuck) };
        const [own = 0, updated = 0, available = 0] = [all.replicas, all.updatedReplicas, all.availableReplicas];
        const expected =
          generation > all.observedGeneration
            ? "Rolling"
            : isStuck
              ? "Failed"
              : updated >= replicas && own <= updated && available >= updated
                ? "Done"
                : "Rolling";
        assert.equal(progressOf(workload("apps/v1 Deployment", { replicas }, all, generation)).state, expected);
      }),
    );
  });

  it("of a malformed object is judged without a failure", () => {
    const field = fc.constantFrom("replicas", "observedGeneration", "conditions", "updateStrategy", "type", "phase");
    const some = fc.jsonValue({ maxDepth: 2, depthSize: "xsmall" });
    const fields = fc.dictionary(field, fc.oneof(some, fc.array(fc.dictionary(field, some))));
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(cases)), fields, fields, (type, spec, status) => {
        assert.ok(progressOf(workload(type, spec, status)).message.length > 0);
      }),
    );
  });
});
