/** The rollout in an explanation, which never contains digests. */
import assert from "node:assert/strict";
import { explainRollout } from "../../../src/explain/rollout.ts";
import { bindingOf, KINDS } from "../bindings.ts";

describe("the rollout of an explanation", () => {
  it("lists the events that restart workloads besides a changed value", () => {
    const rollout = { consumersOf: ["bucket"], kinds: ["CronJob"], runCronJobs: true };
    const restarts = (restartOn: ("SourceCreated" | "SourceDeleted")[]) =>
      explainRollout(bindingOf({ rollout: { ...rollout, restartOn } })).restarts.slice(1);
    const runs = "each restart of a CronJob runs a Job at once";
    assert.deepEqual(restarts(["SourceCreated", "SourceDeleted"]), ["also when a source is created or deleted", runs]);
    assert.deepEqual(restarts([]), [runs]);
  });

  it("describes which workloads restart, step by step", () => {
    const steps = [
      { name: "cache", kinds: ["StatefulSet"], consumersOf: ["bucket"] },
      {
        name: "clones",
        kinds: ["Deployment"],
        consumersOf: ["bucket"],
        consumersOfTargets: true,
        consumersBy: ["Env", "ImagePullSecret", "CSI"],
        targets: [
          { kind: "Deployment", name: "proxy", namespace: "edge" },
          { kind: "Deployment", namespace: "edge", selector: { names: ["web-*"] } },
        ],
      },
      {
        name: "rest",
        kinds: KINDS,
        ownedByTargets: true,
        targets: [
          { kind: "Deployment", name: "core" },
          { kind: "Database", name: "main", template: "spec.podTemplate" },
          { kind: "DaemonSet", selector: { exceptNames: ["kube-*", "old"] } },
          {
            kind: "Rollout",
            restartPath: "spec.restartAt",
            selector: {
              names: ["web-*"],
              exceptNames: ["web-old"],
              matchLabels: { tier: "front" },
              matchExpressions: [
                { key: "a", operator: "In", values: ["b", "c"] },
                { key: "d", operator: "Exists" },
              ],
            },
          },
        ],
      },
    ];
    assert.deepEqual(explainRollout(bindingOf({ rollout: { steps, suspend: true } })), {
      suspended: true,
      restarts: [
        "step cache: workloads whose pods refer to bucket, among StatefulSet",
        "step clones: workloads whose pods refer by env or imagePullSecret or csi to bucket, among Deployment",
        "step clones: workloads whose pods refer by env or imagePullSecret or csi to a Secret or ConfigMap that this binding writes, among Deployment",
        "step clones: Deployment edge/proxy",
        "step clones: every Deployment of namespace edge that matches web-*",
        "step rest: workloads that belong to a target, among Deployment, StatefulSet, DaemonSet",
        "step rest: Deployment core",
        "step rest: Database main, by spec.podTemplate",
        "step rest: every DaemonSet that matches any name except kube-*, old",
        "step rest: every Rollout that matches web-*, tier=front, a In b c, d Exists except web-old, by spec.restartAt",
      ],
      trackedValues: [],
    });
  });

  it("shows the baseline and the pending workloads, without digests, restart annotations and uids", () => {
    const workload = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      namespace: "registry",
      name: "core",
      state: "Waiting",
    };
    const status = {
      rollout: {
        digestKeyID: "k1",
        revision: 4,
        digests: { "bucket/b": "DIGEST", "bucket/a": "DIGEST" },
        unknownNamespaces: ["edge"],
        lastStartTime: "2026-01-01T00:00:00Z",
        pending: {
          firstChangeTime: "2026-01-02T00:00:00Z",
          lastChangeTime: "2026-01-02T00:00:00Z",
          reason: "Waiting",
          message: "for the window",
          digests: { "bucket/a": "DIGEST" },
          workloads: [{ ...workload, uid: "UID", stamp: "STAMP", step: "one", message: "for its turn" }],
        },
      },
    };
    const seen = explainRollout(bindingOf({ rollout: { consumersOf: ["bucket"], kinds: KINDS } }, status));
    assert.deepEqual(seen, {
      suspended: false,
      restarts: ["workloads whose pods refer to bucket, among Deployment, StatefulSet, DaemonSet"],
      revision: 4,
      trackedValues: ["bucket/a", "bucket/b"],
      unknownNamespaces: ["edge"],
      lastStartTime: "2026-01-01T00:00:00Z",
      pending: {
        firstChangeTime: "2026-01-02T00:00:00Z",
        reason: "Waiting",
        message: "for the window",
        workloads: [{ ...workload, step: "one", message: "for its turn" }],
      },
    });
    assert.doesNotMatch(JSON.stringify(seen), /DIGEST|STAMP|UID/);
  });
});
