/** The copy of a Job while it is recreated, and the Job that is created from it. */
import assert from "node:assert/strict";
import { fieldsAt } from "../../../src/apimachinery/fields.ts";
import type { KubeObject } from "../../../src/apimachinery/objects.ts";
import {
  copied,
  copyName,
  copyOf,
  isCopyOf,
  isCreatedFrom,
  isPassing,
  jobToCreate,
  originalIn,
  whyNoCopy,
} from "../../../src/workloads/jobs.ts";

const byController = { "controller-uid": "1", "batch.kubernetes.io/job-name": "migrate", "job-name": "migrate" };

const job = (spec: object = {}, more: object = {}): KubeObject => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: {
    name: "migrate",
    namespace: "shop",
    uid: "1",
    resourceVersion: "7",
    generation: 1,
    labels: { app: "shop", ...byController },
    annotations: { note: "kept" },
    ownerReferences: [{ uid: "9" }],
    ...more,
  },
  spec: {
    selector: { matchLabels: { "batch.kubernetes.io/controller-uid": "1" } },
    completions: 3,
    parallelism: 2,
    suspend: false,
    template: {
      metadata: { labels: { app: "shop", ...byController }, annotations: { sidecar: "no" } },
      spec: { restartPolicy: "Never", containers: [{ name: "app", image: "app" }] },
    },
    ...spec,
  },
  status: { succeeded: 3 },
});

/** As the API server would return it. */
const stored = (below: object, name = copyName("1")): KubeObject => {
  const { metadata, ...rest } = below as { metadata: object };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    ...rest,
    metadata: { name, uid: "2", resourceVersion: "8", generation: 1, ...metadata },
  };
};

/** A Job whose pod template says that it is a copy of another. */
const saying = (text: string) => ({ template: { metadata: { annotations: { "inlay.dev/copy-of": text } } } });

describe("the copy of a Job", () => {
  const copy = stored(copyOf(job()));

  it("never runs, and belongs to no other object", () => {
    const spec = copy["spec"] as Record<string, unknown>;
    assert.deepEqual([spec["suspend"], spec["parallelism"], spec["selector"]], [true, 0, undefined]);
    assert.deepEqual(copy.metadata.labels, { "inlay.dev/copy": "true" });
    assert.equal(copy.metadata.ownerReferences, undefined);
    assert.equal(isPassing(copy), true);
  });

  it("has a name that follows from the Job's uid, and identifies the Job", () => {
    assert.match(copyName("1"), /^inlay-copy-[0-9a-f]{20}$/);
    assert.notEqual(copyName("1"), copyName("2"));
    assert.equal(originalIn(copy, "1")?.name, "migrate");
    assert.equal(originalIn(copy, "2"), undefined);
    assert.equal(originalIn(job(), "1"), undefined);
    for (const text of ["", "{", "null", "7", "[]"]) assert.equal(originalIn(job(saying(text)), "1"), undefined);
  });

  it("names the Job that it represents, and no other object does, whatever it contains", () => {
    assert.deepEqual(copied(copy), { name: "migrate", uid: "1", annotations: { note: "kept" } });
    assert.equal(copied(job()), undefined);
    assert.equal(copied(stored(copyOf(job()), "migrate-2")), undefined);
    assert.equal(copied(stored(copyOf(job()), copyName("2"))), undefined);
    for (const text of ["", "{", "null", "7", "[]", '{"name":7,"uid":"1"}', '{"name":"migrate"}'])
      assert.equal(copied(stored({ metadata: {}, spec: saying(text) })), undefined);
  });

  it("gives back the fields of a Job that may change, and nothing else that it contains", () => {
    const original = { name: "migrate", uid: "1", resourceVersion: "7", metadata: {}, spec: {} };
    const forged = {
      ...original,
      metadata: { labels: { app: "shop" }, finalizers: ["example.com/hold"], name: "other" },
      spec: { parallelism: 2, manualSelector: true, completions: 9 },
    };
    assert.deepEqual(originalIn(job(saying(JSON.stringify(forged))), "1"), {
      ...original,
      metadata: { labels: { app: "shop" }, annotations: {}, ownerReferences: [] },
      spec: { suspend: null, parallelism: 2 },
    });
    assert.equal(originalIn(job(saying(JSON.stringify({ ...original, name: 7 }))), "1"), undefined);
  });

  it("counts as the original copy as long as its spec has not changed", () => {
    assert.equal(isCopyOf(copy, job()), true);
    const changed = { ...copy, metadata: { ...copy.metadata, generation: 2 } };
    assert.equal(isCopyOf(changed, job()), false);
  });

  it("becomes the Job again, with its stamp and without what the Job controller added", () => {
    const original = originalIn(copy, "1") ?? assert.fail();
    assert.deepEqual(jobToCreate(copy, original, "inlay.dev/rollout", "1-abc"), {
      metadata: { labels: { app: "shop" }, annotations: { note: "kept" }, ownerReferences: [{ uid: "9" }] },
      spec: {
        completions: 3,
        parallelism: 2,
        suspend: false,
        template: {
          metadata: { labels: { app: "shop" }, annotations: { sidecar: "no", "inlay.dev/rollout": "1-abc" } },
          spec: { restartPolicy: "Never", containers: [{ name: "app", image: "app" }] },
        },
      },
    });
  });

  it("distinguishes a Job that was created from it from Jobs of other clients", () => {
    const whole = jobToCreate(copy, originalIn(copy, "1") ?? assert.fail(), "inlay.dev/rollout", "2-3fa9c1-09ab34de12");
    const template = (annotations: object) => ({
      ...fieldsAt(job(), "spec", "template"),
      metadata: { labels: { app: "shop", ...byController }, annotations: { sidecar: "no", ...annotations } },
    });
    const created = (annotations: object, spec: object = {}, metadata: object = {}) =>
      job({ template: template(annotations), ...spec }, { uid: "3", ...metadata });
    const stamp = "1-3fa9c1-09ab34de12";
    for (const annotations of [{}, { "inlay.dev/rollout": stamp }, { "example.com/rollout": stamp }])
      assert.equal(isCreatedFrom(created(annotations), whole), true, JSON.stringify(annotations));
    const others = [
      created({ more: "no stamp" }),
      created({}, { parallelism: 3 }),
      created({}, { suspend: true }),
      created({}, { ttlSecondsAfterFinished: 0 }),
      created({}, { template: { ...template({}), spec: { containers: [{ name: "app", image: "forged" }] } } }),
      created({}, {}, { labels: {} }),
      created({}, {}, { annotations: {} }),
      created({}, {}, { ownerReferences: [] }),
      created({}, {}, { finalizers: ["example.com/hold"] }),
    ];
    for (const other of others) assert.equal(isCreatedFrom(other, whole), false, JSON.stringify(other));
  });

  it("records which fields were missing, so that they stay missing", () => {
    const { suspend: _, parallelism: __, ...spec } = job()["spec"] as Record<string, unknown>;
    const bare = { ...job(), spec };
    const held = stored(copyOf(bare));
    const below = jobToCreate(held, originalIn(held, "1") ?? assert.fail(), "a", "b");
    assert.deepEqual(Object.keys(below["spec"] as object).sort(), ["completions", "template"]);
  });

  it("is not created for a Job that another controller runs, or that selects its pods", () => {
    assert.equal(whyNoCopy(job()), undefined);
    assert.match(whyNoCopy(job({ manualSelector: true })) ?? "", /manualSelector/);
    assert.match(whyNoCopy(job({ managedBy: "example.com/queue" })) ?? "", /managedBy/);
  });
});

describe("a Job of a CronJob", () => {
  it("is replaced by the next run", () => {
    const ownerReferences = [{ uid: "9", kind: "CronJob", name: "nightly" }];
    assert.equal(isPassing(job({}, { ownerReferences })), true);
    assert.equal(isPassing(job()), false);
  });
});
