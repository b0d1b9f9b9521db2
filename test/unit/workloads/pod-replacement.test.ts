/** Which pod is deleted next if no controller does it. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import { nextPod, type PodReplacement, replacingOf } from "../../../src/workloads/pod-replacement.ts";

const NOW = Date.parse("2026-11-21T10:00:00Z");
const LABEL = "controller-revision-hash";

const workload = (kind: string, spec: object, status: object, annotations = {}, generation = 3): KubeObject => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: "db", uid: "1", resourceVersion: "7", generation, annotations },
  spec: { selector: { matchLabels: { app: "db" } }, updateStrategy: { type: "OnDelete" }, ...spec },
  status: { observedGeneration: 3, ...status },
});
const set = (spec: object = {}, status: object = {}) =>
  workload("StatefulSet", { replicas: 3, ...spec }, { updateRevision: "new", readyReplicas: 3, ...status });

interface Pod {
  ordinal: number;
  isNew?: boolean;
  isReady?: boolean;
  isGoing?: boolean;
  readyFor?: number;
}

function pod({ ordinal, isNew = false, isReady = true, isGoing = false, readyFor = 60 }: Pod): KubeObject {
  const lastTransitionTime = new Date(NOW - readyFor * 1000).toISOString();
  const conditions = [{ type: "Ready", status: isReady ? "True" : "False", lastTransitionTime }];
  const labels = { [LABEL]: isNew ? "new" : "old" };
  const metadata = { name: `db-${ordinal}`, uid: `${ordinal}`, resourceVersion: "1", labels };
  const deletionTimestamp = "2026-11-21T09:59:59Z";
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: isGoing ? { ...metadata, deletionTimestamp } : metadata,
    status: { conditions },
  };
}

const of = (object = set()): PodReplacement => replacingOf(object) ?? assert.fail();
const next = (pods: readonly Pod[], replacing = of()) => {
  const found = nextPod(replacing, pods.map(pod), NOW);
  return found.do === "evict" ? found.pod.metadata.name : found.do;
};

describe("a workload whose pods are replaced when they are deleted", () => {
  it("is a StatefulSet or DaemonSet with OnDelete, and has the wanted number of pods and their revision", () => {
    assert.deepEqual(of(), {
      selector: "app=db",
      wanted: 3,
      label: LABEL,
      revision: "new",
      readySeconds: 0,
      progress: { state: "Rolling", message: "0 of 3 pods are updated" },
    });
    const generation = { "deprecated.daemonset.template.generation": "5" };
    const status = { desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2 };
    const daemons = of(workload("DaemonSet", { minReadySeconds: 5 }, status, generation));
    assert.deepEqual([daemons.wanted, daemons.label, daemons.revision], [2, "pod-template-generation", "5"]);
    assert.deepEqual([daemons.readySeconds, daemons.progress.state], [5, "Done"]);
    assert.equal(replacingOf(set({ updateStrategy: { type: "RollingUpdate" } })), undefined);
    assert.equal(replacingOf({ ...set(), apiVersion: "example.com/v1" }), undefined);
    assert.equal(replacingOf(workload("Deployment", {}, {})), undefined);
  });

  it("waits until its controller has observed its present template", () => {
    const late = of(set({}, { observedGeneration: 2 }));
    assert.deepEqual([late.revision, late.progress.state], [undefined, "Rolling"]);
    assert.equal(next([{ ordinal: 0 }, { ordinal: 1 }, { ordinal: 2 }], late), "wait");
  });

  it("loses its old pods from the highest ordinal down, each when all others exist and are ready", () => {
    const all = [0, 10, 9].map((ordinal) => ({ ordinal }));
    assert.equal(next(all), "db-10");
    assert.equal(next([{ ordinal: 0 }, { ordinal: 9 }, { ordinal: 10, isNew: true }]), "db-9");
    assert.equal(next([{ ordinal: 0 }, { ordinal: 9 }, { ordinal: 10, isNew: true, isReady: false }]), "wait");
    assert.equal(next([{ ordinal: 0 }, { ordinal: 9 }, { ordinal: 10, isGoing: true }]), "wait");
    assert.equal(next([{ ordinal: 0 }, { ordinal: 9 }]), "wait");
    assert.equal(next(all.map((each) => ({ ...each, isNew: true }))), "nothing");
  });

  it("loses old pods first that are not ready, because they may wait for the value", () => {
    assert.equal(next([{ ordinal: 0, isReady: false }, { ordinal: 1 }, { ordinal: 2 }]), "db-0");
    assert.equal(next([{ ordinal: 0, isReady: false }, { ordinal: 1, isReady: false }, { ordinal: 2 }]), "db-1");
    // A StatefulSet creates the others when this one is ready.
    assert.equal(next([{ ordinal: 0, isReady: false }]), "db-0");
    assert.equal(next([{ ordinal: 0, isReady: false, isGoing: true }]), "wait");
  });

  it("waits until a new pod has been ready for long enough", () => {
    const replacing = of(set({ minReadySeconds: 30 }));
    const pods = (readyFor: number) => [{ ordinal: 0 }, { ordinal: 1 }, { ordinal: 2, isNew: true, readyFor }].map(pod);
    assert.deepEqual(nextPod(replacing, pods(10), NOW), { do: "wait", requeueAfterMs: 20_000 });
    assert.equal(nextPod(replacing, pods(30), NOW).do, "evict");
  });

  it("never loses a new pod, nor a ready one while another is not ready, in any state", () => {
    const pods = fc.uniqueArray(
      fc.record({ ordinal: fc.nat(5), isNew: fc.boolean(), isReady: fc.boolean(), isGoing: fc.boolean() }),
      { selector: ({ ordinal }) => ordinal },
    );
    fc.assert(
      fc.property(pods, fc.integer({ min: 1, max: 6 }), (all, replicas) => {
        const found = nextPod(of(set({ replicas })), all.map(pod), NOW);
        if (found.do !== "evict") return;
        const evicted = all.find(({ ordinal }) => found.pod.metadata.name === `db-${ordinal}`) ?? assert.fail();
        assert.ok(!evicted.isNew && !evicted.isGoing);
        if (!evicted.isReady) return;
        assert.ok(all.length >= replicas);
        assert.ok(all.every(({ isGoing, isReady }) => !isGoing && isReady));
      }),
    );
  });
});
