/** What is cached of a workload, by the path of its pod template. */
import assert from "node:assert/strict";
import { FieldPath } from "../../../src/apimachinery/field-path.ts";
import type { JsonObject, KubeObject } from "../../../src/apimachinery/objects.ts";
import {
  MOST_RESTARTS,
  RESTARTS_ANNOTATION,
  restartTimesText,
  WORKLOAD_KINDS,
  workloadOf,
} from "../../../src/workloads/workload.ts";

const TEMPLATE = FieldPath.parse("spec.template");

const template = {
  metadata: { labels: { app: "web" }, annotations: { "example.com/note": "of no use" } },
  spec: {
    containers: [
      { name: "web", readinessProbe: { httpGet: { port: 80 } }, envFrom: [{ secretRef: { name: "bucket" } }] },
      { name: "proxy" },
    ],
    initContainers: [{ name: "init" }],
  },
};

const deployment = (spec: object, more: object = {}): KubeObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "registry", uid: "1", resourceVersion: "7", generation: 1 },
  spec,
  status: { observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
  ...more,
});

describe("a workload", () => {
  it("may have integers that a double can't hold, and values of any type where a number is expected", () => {
    const tolerations = [{ key: "a", tolerationSeconds: 9007199254740993n as unknown as number }];
    const pods = { ...template, spec: { ...template.spec, tolerations } };
    const odd = { toString: 1, valueOf: 1 };
    assert.match(workloadOf(deployment({ template: pods, replicas: odd }), TEMPLATE).templateHash ?? "", /^[-\w]{16}$/);
    const updateStrategy = { type: "OnDelete" };
    const set = deployment({ template, replicas: odd, minReadySeconds: odd, updateStrategy }, { kind: "StatefulSet" });
    const status = { observedGeneration: odd, replicas: odd };
    assert.equal(workloadOf({ ...set, status }, TEMPLATE).progress.state, "Rolling");
  });

  it("has the fields that rollouts need, and no more", () => {
    const metadata = {
      ...deployment({}).metadata,
      ownerReferences: [{ uid: "owner", name: "harbor" }],
      labels: { not: "its pods'" },
    };
    const { templateHash, ...rest } = workloadOf(deployment({ template, replicas: 1 }, { metadata }), TEMPLATE);
    assert.match(templateHash ?? "", /^[-\w]{16}$/);
    assert.deepEqual(rest, {
      references: [{ kind: "Secret", name: "bucket", by: "envFrom" }],
      progress: { state: "Done", message: "rolled out" },
      paused: false,
      onDelete: false,
      unprobed: ["proxy"],
      stamps: [],
      owners: ["owner"],
      labels: { app: "web" },
    });
  });

  it("has no owners, labels and containers whose texts are too long for names", () => {
    const long = "x".repeat(100_000);
    const [container] = template.spec.containers;
    const pods = {
      metadata: { labels: { app: "web", long, [long]: "" } },
      spec: { containers: [container, { ...container, name: long }] },
    };
    const ownerReferences = [{ uid: long }, { uid: "owner" }];
    const object = deployment({ template: pods }, { metadata: { ...deployment({}).metadata, ownerReferences } });
    const { owners, labels, unprobed } = workloadOf(object, TEMPLATE);
    assert.deepEqual([owners, labels], [["owner"], { app: "web" }]);
    assert.ok(!unprobed.includes(long));
  });

  it("has the times of its last restarts, and ignores other texts in their place", () => {
    const [one, two] = [Date.parse("2026-11-21T10:00:00.000Z"), Date.parse("2026-11-21T10:00:00.250Z")];
    const timesIn = (text: string) => {
      const metadata = { ...deployment({}).metadata, annotations: { [RESTARTS_ANNOTATION]: text } };
      return workloadOf(deployment({ template }, { metadata }), TEMPLATE).restarts;
    };
    assert.deepEqual(timesIn(restartTimesText([one, two])), [one, two]);
    assert.deepEqual(timesIn("2026-11-21T10:00:00.250Z never 2026-11-21T10:00:00.000Z"), [one, two]);
    for (const text of ["", "never", "2026-11-21T10:00:00.000Z ".repeat(101)]) assert.equal(timesIn(text), undefined);
    const most = Array.from({ length: MOST_RESTARTS }, (_, at) => one + at);
    assert.deepEqual(timesIn(restartTimesText(most)), most);
  });

  it("has a hash of its template if each change of that replaces its pods", () => {
    const hashOf = (spec: object, more: object = {}) => workloadOf(deployment(spec, more), TEMPLATE).templateHash;
    const annotated = { ...template, metadata: { annotations: { "inlay.dev/rollout": "1" } } };
    assert.equal(hashOf({ template, replicas: 2 }), hashOf({ template, paused: true }));
    assert.notEqual(hashOf({ template: annotated }), hashOf({ template }));
    assert.equal(hashOf({ template, updateStrategy: { type: "OnDelete" } }, { kind: "StatefulSet" }), undefined);
    assert.equal(hashOf({ template }, { apiVersion: "batch/v1", kind: "Job" }), undefined);
  });

  it("has no hash of a template of more than 64 KiB", () => {
    const [container] = template.spec.containers;
    const sized = (length: number) => ({ spec: { containers: [{ ...container, args: ["x".repeat(length)] }] } });
    const has = (length: number) => "templateHash" in workloadOf(deployment({ template: sized(length) }), TEMPLATE);
    assert.deepEqual([60_000, 70_000].map(has), [true, false]);
  });

  it("has its pods described wherever the path leads", () => {
    const nested = { jobTemplate: { spec: { template } } };
    const { references, labels } = workloadOf(deployment(nested), FieldPath.parse("spec.jobTemplate.spec.template"));
    assert.deepEqual(references, [{ kind: "Secret", name: "bucket", by: "envFrom" }]);
    assert.deepEqual(labels, { app: "web" });
    const sets = { sets: [{ name: "a" }, { name: "b", template }] };
    assert.equal(workloadOf(deployment(sets), FieldPath.parse("spec.sets[name=b].template")).references.length, 1);
  });

  it("without a template at the path, or with several, refers to nothing", () => {
    const several = { sets: [template, template].map((each) => ({ name: "a", template: each })) };
    const paths = ["spec.template", "spec.sets[name=a].template", "spec.replicas", "spec.sets[name=none].template"];
    for (const path of paths) {
      const { references, unprobed, labels } = workloadOf(
        deployment({ replicas: 1, ...several }),
        FieldPath.parse(path),
      );
      assert.deepEqual([references, unprobed, labels], [[], [], {}], path);
    }
  });

  it("may be paused, and may keep its pods until they are deleted", () => {
    const { paused, onDelete } = workloadOf(
      deployment({ template, paused: true, updateStrategy: { type: "OnDelete" } }),
      TEMPLATE,
    );
    assert.deepEqual([paused, onDelete], [true, true]);
    assert.equal(workloadOf(deployment({ template, paused: "true" }), TEMPLATE).paused, false);
  });

  it("needs no readiness probe if its pods run to completion", () => {
    const run = { apiVersion: "batch/v1", kind: "Job" };
    assert.deepEqual(workloadOf(deployment({ template }, run), TEMPLATE).unprobed, []);
  });

  it("may have its template in another object", () => {
    const of = (spec: JsonObject, kind = "Rollout") =>
      workloadOf({ ...deployment(spec, { kind }), apiVersion: "argoproj.io/v1alpha1" }, TEMPLATE);
    const referring = { workloadRef: { apiVersion: "apps/v1", kind: "Deployment", name: "core" } };
    assert.equal(of(referring).templateElsewhere, true);
    assert.equal(of({ template }).templateElsewhere, undefined);
    assert.equal(of(referring, "Workflow").templateElsewhere, undefined);
  });

  it("without a pod template has no references, but the text of its restart field", () => {
    const path = FieldPath.parse("spec.restartAt");
    const stamp = "12-3fa9c1-09ab34de12";
    const { references, restart, stamps } = workloadOf(deployment({ restartAt: stamp }), undefined, path);
    assert.deepEqual([references, restart, stamps], [[], stamp, [stamp]]);
    const both = workloadOf(deployment({ template, restartAt: "2026-11-21T10:00:01Z" }), TEMPLATE, path);
    assert.deepEqual([both.references.length, both.restart, both.stamps], [1, "2026-11-21T10:00:01Z", []]);
    assert.equal(workloadOf(deployment({ restartAt: 7 }), undefined, path).restart, undefined);
  });

  it("of each known kind has the path of its template", () => {
    for (const [kind, { template: path }] of Object.entries(WORKLOAD_KINDS)) {
      const spec = kind === "CronJob" ? { jobTemplate: { spec: { template } } } : { template };
      assert.equal(workloadOf(deployment(spec, { kind }), FieldPath.parse(path)).references.length, 1, kind);
    }
  });
});
