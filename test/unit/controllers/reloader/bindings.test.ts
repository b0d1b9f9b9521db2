/** The bindings that are generated from annotations: one for up to sixteen sources, with unique names. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { SecretBinding } from "../../../../src/api/binding.ts";
import { isLabelled } from "../../../../src/api/reloader.ts";
import type { ObjectMeta } from "../../../../src/apimachinery/objects.ts";
import {
  bindingsOf,
  isAsGenerated,
  isFormer,
  metadataOf,
  type ReloaderBinding,
} from "../../../../src/controllers/reloader/bindings.ts";
import type { ReloaderSource } from "../../../../src/controllers/reloader/sources.ts";
import { bindingOf, recordOf } from "../../objects.ts";

const owner = { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "web", uid: "1" };
const plain = { minInterval: undefined, restartAt: false };
const secret = (name: string): ReloaderSource => ({ kind: "Secret", name });
const many = (count: number) => Array.from({ length: count }, (_, n) => secret(`s-${n}`));
const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,10}[a-z0-9])?$/);
const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

const namesOf = ({ spec }: ReloaderBinding) =>
  spec.sources.map(({ secret, configMap }) => `${secret ? "Secret" : "ConfigMap"} ${(secret ?? configMap)?.name}`);

describe("the bindings of an annotated workload", () => {
  it("restart that workload for all of its sources, with the account for generated bindings", () => {
    const [made, ...others] = bindingsOf(owner, [secret("a"), { kind: "ConfigMap", name: "a" }], {
      ...plain,
      minInterval: "5m",
    });
    assert.deepEqual(others, []);
    assert.equal(made?.name, "reloader-deployment-web");
    assert.deepEqual(made.spec.sources, [
      { name: "secret-a", optional: true, secret: { name: "a" } },
      { name: "configmap-a", optional: true, configMap: { name: "a" } },
    ]);
    assert.equal(made.spec.serviceAccountName, "inlay-reloader");
    assert.deepEqual(made.spec.rollout?.targets, [{ kind: "Deployment", name: "web" }]);
    assert.equal(made.spec.rollout?.minInterval, "5m");
    assert.deepEqual(bindingsOf(owner, [], plain), []);
    const [rollout] = bindingsOf({ ...owner, kind: "Rollout" }, [secret("a")], { ...plain, restartAt: true });
    assert.deepEqual(rollout?.spec.rollout?.targets, [{ kind: "Rollout", name: "web", restartPath: "spec.restartAt" }]);
  });

  it("count created and deleted sources, and run CronJobs at once, if the configuration says so", () => {
    const all = { ...plain, reloadOnCreate: true, reloadOnDelete: true, runCronJobs: true };
    const rolloutOf = (kind: string, way: typeof plain) => {
      const [made] = bindingsOf({ ...owner, kind }, [secret("a")], way);
      return [made?.spec.rollout?.restartOn, made?.spec.rollout?.runCronJobs];
    };
    assert.deepEqual(rolloutOf("CronJob", all), [["SourceCreated", "SourceDeleted"], true]);
    assert.deepEqual(rolloutOf("Deployment", all), [["SourceCreated", "SourceDeleted"], undefined]);
    const deleted = { ...plain, reloadOnCreate: false, reloadOnDelete: true, runCronJobs: false };
    assert.deepEqual(rolloutOf("CronJob", deleted), [["SourceDeleted"], undefined]);
    assert.deepEqual(rolloutOf("CronJob", plain), [undefined, undefined]);
  });

  it("restart by the versions of a SecretProviderClass", () => {
    const [made] = bindingsOf(owner, [{ kind: "SecretProviderClass", name: "vault.db" }], plain);
    const [source] = made?.spec.sources ?? [];
    assert.deepEqual([source?.providerClass, source?.optional], [{ name: "vault.db" }, true]);
    assert.match(source?.name ?? "", /^secretproviderclass-vault-db-X/);
  });

  it("contain every source once, at most sixteen each", () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 200 }), (names) => {
        const made = bindingsOf(owner, names.map(secret), plain);
        assert.ok(made.every(({ spec }) => spec.sources.length > 0 && spec.sources.length <= 16));
        assert.deepEqual(made.flatMap(namesOf).sort(), names.map((each) => `Secret ${each}`).sort());
        assert.equal(new Set(made.map((each) => each.name)).size, made.length);
      }),
    );
  });

  it("keep every other source in its binding when one is added, except when their number doubles", () => {
    const places = (count: number) =>
      new Map(bindingsOf(owner, many(count), plain).flatMap((made) => namesOf(made).map((each) => [each, made.name])));
    let moves = 0;
    for (let count = 17; count < 120; count++) {
      const [before, after] = [places(count), places(count + 1)];
      if ([...before].some(([source, binding]) => after.get(source) !== binding)) moves++;
    }
    assert.ok(moves <= 4, `${moves}`);
  });

  it("give sources unique names that the schema permits", () => {
    const sources = fc.uniqueArray(
      fc.record({
        kind: fc.constantFrom("Secret" as const, "ConfigMap" as const),
        name: fc.stringMatching(/^[a-z]([-a-z.]{0,100}[a-z])?$/),
      }),
      { maxLength: 16, selector: ({ kind, name }) => `${kind} ${name}` },
    );
    fc.assert(
      fc.property(sources, (all) => {
        const called = bindingsOf(owner, all, plain).map(({ spec }) => spec.sources.map((each) => each.name ?? ""));
        for (const names of called) {
          assert.equal(new Set(names).size, names.length);
          for (const each of names) assert.match(each, /^[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$/);
        }
      }),
    );
    const [made] = bindingsOf(owner, [secret("a.b"), secret("a-b")], plain);
    assert.equal(new Set(made?.spec.sources.map((each) => each.name)).size, 2);
  });

  it("have unique names, however long the workloads' names are", () => {
    const workloads = [
      "web",
      "web-2",
      "2-web",
      "web.2",
      "w".repeat(253),
      "w".repeat(252),
      `${"w".repeat(63)}.${"x".repeat(189)}`,
    ];
    const names = ["Deployment", "StatefulSet"].flatMap((kind) =>
      workloads.flatMap((each) => bindingsOf({ ...owner, kind, name: each }, many(40), plain).map((made) => made.name)),
    );
    assert.equal(new Set(names).size, names.length);
    for (const each of names) {
      assert.match(each, NAME);
      assert.ok(each.length <= 253);
    }
  });
});

describe("a binding counts as generated", () => {
  const [made] = bindingsOf(owner, [secret("a")], plain) as [ReloaderBinding];
  const binding = (change: Parameters<typeof bindingOf>[0] = {}): SecretBinding =>
    bindingOf({
      metadata: {
        labels: { "inlay.dev/generated-for": "reloader" },
        ownerReferences: [{ uid: "1" }],
        ...change.metadata,
      },
      spec: { ...made.spec, ...change.spec },
      status: { ...change.status },
    });

  it("with its label, its owner and its spec", () => {
    assert.ok(isAsGenerated(binding(), made));
    assert.ok(isLabelled(binding().metadata.labels));
  });

  const edits: Record<string, Parameters<typeof binding>[0]> = {
    "another source": { spec: { sources: [{ name: "secret-a", optional: true, secret: { name: "b" } }] } },
    "a target": { spec: { targets: [{ apiVersion: "v1", kind: "ConfigMap", name: "a", fields: [] }] } },
    "another account": { spec: { serviceAccountName: "inlay" } },
    "one more field": { spec: { suspend: false } },
    "no label": { metadata: { labels: {} } },
    "another owner": { metadata: { ownerReferences: [{ uid: "2" }] } },
    "recorded targets": { status: { targets: [recordOf()] } },
  };
  for (const [what, change] of Object.entries(edits)) {
    it(`but not with ${what}`, () => assert.equal(isAsGenerated(binding(change), made), false));
  }
});

describe("the binding of a Job", () => {
  const job = { apiVersion: "batch/v1", kind: "Job", namespace: "shop", name: "migrate", uid: "1" };
  const madeFor = (uid: string, isStamped = false) =>
    bindingsOf({ ...job, uid }, [secret("a")], plain, isStamped)[0] ?? assert.fail();
  const binding = (metadata: Partial<ObjectMeta> = metadataOf(madeFor("1"))) =>
    bindingOf({ metadata: { name: "reloader-job-migrate", uid: "b", ...metadata }, spec: madeFor("1").spec });

  it("has no owner, which would delete it with the Job, and a long timeout", () => {
    assert.deepEqual(metadataOf(madeFor("1")), {
      labels: { "inlay.dev/generated-for": "reloader" },
      annotations: { "inlay.dev/generated-for-uid": "1" },
    });
    assert.equal(madeFor("1").spec.rollout?.timeout, "24h");
  });

  it("belongs to the recreated Job, which has a stamp, and to no other Job of that name", () => {
    const cases: [ReloaderBinding, asMade: boolean, former: boolean][] = [
      [madeFor("1"), true, false],
      [madeFor("2", true), true, false],
      [madeFor("2"), false, true],
    ];
    for (const [made, asMade, former] of cases)
      assert.deepEqual([isAsGenerated(binding(), made), isFormer(binding(), made)], [asMade, former]);
  });

  it("is corrected if its annotation is removed, and keeps the annotations of others", () => {
    const robbed = binding({ labels: { mine: "x" }, annotations: { note: "y" } });
    const made = madeFor("1");
    assert.deepEqual([isAsGenerated(robbed, made), isFormer(robbed, made)], [false, false]);
    const { labels, annotations } = metadataOf(made, robbed.metadata);
    assert.deepEqual(labels, { mine: "x", "inlay.dev/generated-for": "reloader" });
    assert.deepEqual(annotations as object, { note: "y", "inlay.dev/generated-for-uid": "1" });
    const corrected = metadataOf(madeFor("2", true), binding().metadata) as { annotations: object };
    assert.deepEqual(corrected.annotations, { "inlay.dev/generated-for-uid": "1" });
  });
});
