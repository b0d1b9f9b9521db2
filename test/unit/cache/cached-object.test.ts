/** The cached parts of objects for Reloader's annotations, and which changes matter to subscribers that select by them. */
import assert from "node:assert/strict";
import type { KubeObject, ObjectMeta } from "../../../src/apimachinery/objects.ts";
import { NAMESPACES } from "../../../src/apimachinery/resources.ts";
import {
  type CachedObject,
  classifyChange,
  isChoice,
  projectionFor,
  withHistory,
} from "../../../src/cache/cached-object.ts";
import type { Subscription } from "../../../src/cache/subscription.ts";
import { kubeObjectOf } from "../objects.ts";
import { DEPLOYMENTS, SECRETS } from "../resources.ts";

const secrets: Subscription = { identity: "", resource: SECRETS, namespace: "shop", labels: "", names: undefined };
const workloads: Subscription = { ...secrets, workload: { template: "spec.template" } };
let versions = 0;

function object(annotations: Record<string, string>, more: Partial<ObjectMeta> = {}, pods: object = {}): KubeObject {
  const metadata = { uid: "1", resourceVersion: `${++versions}`, annotations, ...more };
  return kubeObjectOf({ kind: "Secret", metadata, spec: { template: pods } });
}
const secret = (...all: Parameters<typeof object>): CachedObject => projectionFor(secrets)(object(...all));
const workload = (...all: Parameters<typeof object>): CachedObject => projectionFor(workloads)(object(...all));
const AUTO = { "reloader.stakater.com/auto": "true" };

describe("the cached labels", () => {
  it("are only those of namespaces, which grants compare", () => {
    const labels = { team: "a" };
    const namespaces: Subscription = { ...secrets, resource: NAMESPACES, namespace: undefined, names: ["shop"] };
    const labelsOf = (kept: Subscription, more: object) => projectionFor(kept)(object({}, more)).labels;
    assert.deepEqual([labelsOf(namespaces, { labels }), labelsOf(namespaces, {})], [labels, {}]);
    assert.equal(labelsOf(secrets, { labels }), undefined);
  });
});

describe("the cached parts of SecretProviderClasses", () => {
  const resource = { ...SECRETS, group: "secrets-store.csi.x-k8s.io", kind: "SecretProviderClass" };
  const keep = projectionFor({ ...secrets, resource, whole: true });
  const written = (...names: string[]) => ({ secretObjects: names.map((secretName) => ({ secretName })) });
  const of = (spec: object, resourceVersion = "1"): CachedObject =>
    keep(kubeObjectOf({ metadata: { resourceVersion }, spec: { ...spec, parameters: { objects: "x" } } }));

  it("are only the names of what the driver writes, and none if these are too many", () => {
    const { uid: _, resourceVersion: __, generation: ___, ...kept } = of(written("a"));
    assert.deepEqual(kept, { synced: [{ secret: "a", keys: undefined }] });
    const { synced, isTooLarge } = of(written(...Array.from({ length: 1_001 }, (_, n) => `secret-${n}`)));
    assert.deepEqual([synced, isTooLarge], [[], true]);
  });

  it("are the only ones whose changes count", () => {
    assert.equal(classifyChange(of({ ...written("a"), provider: "vault" }, "2"), of(written("a"))), "none");
    assert.equal(classifyChange(of(written("b"), "2"), of(written("a"))), "change");
  });
});

describe("the cached parts for Reloader's annotations", () => {
  it("are the mark of a Secret, if it has one", () => {
    assert.equal(secret({ "reloader.stakater.com/match": "true" }).mark, "match");
    assert.deepEqual(Object.keys(secret({ "example.com/note": "x" })), ["uid", "resourceVersion", "generation"]);
  });

  it("are a workload's annotations for Reloader, and no others", () => {
    const pods = { metadata: { annotations: { ...AUTO, other: "x" } } };
    assert.deepEqual(workload({ "example.com/note": "x" }, {}, pods).workload?.reloaderAnnotations, {
      own: {},
      pods: AUTO,
    });
    assert.ok(!Object.hasOwn(workload({}).workload ?? {}, "reloaderAnnotations"));
  });
});

describe("a change that matters to subscribers of Reloader's annotations is", () => {
  const reads = (name: string) => ({ spec: { containers: [{ envFrom: [{ secretRef: { name } }] }] } });
  const cases: Record<
    string,
    [isReported: boolean, after: CachedObject | undefined, before: CachedObject | undefined]
  > = {
    "that there is one": [true, secret({}), undefined],
    "that one is gone": [true, undefined, secret({})],
    "that it is another one": [true, secret({}, { uid: "2" }), secret({})],
    "that it is marked": [true, secret({ "reloader.stakater.com/ignore": "true" }), secret({})],
    "nothing of its data or labels": [false, secret({}, { labels: { a: "b" } }), secret({})],
    "that a workload says something": [true, workload(AUTO), workload({})],
    "that its pods refer to something else": [true, workload(AUTO, {}, reads("a")), workload(AUTO, {}, reads("b"))],
    "nothing of how far it is": [false, workload(AUTO, { generation: 2 }, reads("a")), workload(AUTO, {}, reads("a"))],
  };
  for (const [what, [isReported, after, before]] of Object.entries(cases)) {
    it(what, () => assert.equal(isChoice(after, before), isReported));
  }
});

describe("the history of an object", () => {
  const creationTimestamp = "2026-11-24T10:00:00Z";
  const born = Date.parse(creationTimestamp) / 1000;
  const entry = (field: string, second: number) => ({
    manager: field,
    fieldsV1: { [field]: {} },
    time: `2026-11-24T10:00:0${second}Z`,
  });
  const source = (annotations: Record<string, string>, second: number) =>
    secret(annotations, {
      creationTimestamp,
      managedFields: [entry("f:data", second), entry("f:metadata", 9)],
    });

  it("has the time of the data of a Secret, which metadata does not move", () => {
    assert.deepEqual([source({}, 3).createdAt, source({}, 3).dataAt], [born, born + 3]);
    assert.equal(secret({}, { creationTimestamp }).dataAt, undefined);
  });

  const changed = (annotations: Record<string, string>, second: number, more: Partial<ObjectMeta> = {}, pods = {}) => {
    const status = { ...entry("f:status", 9), subresource: "status" };
    const all = {
      creationTimestamp,
      managedFields: [entry("f:spec", 0), entry("f:metadata", second), status],
      ...more,
    };
    return object(annotations, all, pods);
  };
  const FIRST_LIST = { since: undefined, isCreation: false };
  const keep = (each: KubeObject, before: CachedObject | undefined, shown: Parameters<typeof withHistory>[3]) =>
    withHistory(projectionFor(workloads)(each), before, each.metadata, shown);
  const added = (each: KubeObject) => keep(each, undefined, { since: each.metadata.resourceVersion, isCreation: true });
  const shown = (each: KubeObject, before: CachedObject | undefined) =>
    keep(each, before, { since: each.metadata.resourceVersion, isCreation: false });

  it("has the version of the creation that the watch has shown, for this object", () => {
    const created = added(changed(AUTO, 0));
    assert.equal(created.createdAs, created.resourceVersion);
    assert.deepEqual(created.chosen, { version: created.resourceVersion, at: born });
    assert.equal(shown(changed({}, 2), created).createdAs, created.resourceVersion);
    const another = shown(changed(AUTO, 0, { uid: "2" }), created);
    assert.equal(another.createdAs, undefined);
    const { createdAs, chosen } = keep(changed(AUTO, 0), undefined, FIRST_LIST);
    assert.deepEqual([createdAs, chosen], [undefined, undefined]);
  });

  it("has the last change of what restarts a workload, and a change of its status or replicas is none", () => {
    const listed = keep(changed(AUTO, 0), undefined, FIRST_LIST);
    assert.equal(shown(changed(AUTO, 3, { generation: 2 }), listed).chosen, undefined);
    const stamp = "1-0123ab-0123456789";
    const reads = { spec: { containers: [{ envFrom: [{ secretRef: { name: "a" } }] }] } };
    for (const later of [
      changed({}, 3),
      changed(AUTO, 3, {}, reads),
      changed(AUTO, 3, {}, { metadata: { annotations: { "inlay.dev/rollout": stamp } } }),
    ]) {
      const { chosen } = shown(later, listed);
      assert.deepEqual(chosen, { version: later.metadata.resourceVersion, at: born + 3 });
    }
  });

  it("has a change that a later list shows, from the last version before that list", () => {
    const shownBy = { since: "7", isCreation: false };
    const { createdAs, chosen } = keep(changed(AUTO, 2), undefined, shownBy);
    assert.deepEqual([createdAs, chosen], [undefined, { version: "7", at: born + 2 }]);
    assert.equal(keep(changed(AUTO, 0, { managedFields: [] }), undefined, shownBy).chosen, undefined);
  });

  it("has the version of a changed pod template, if the watch shows it and all pods had the former one", () => {
    const deployments: Subscription = { ...workloads, resource: DEPLOYMENTS };
    const at = (image: string, updatedReplicas = 1) => {
      const template = { spec: { containers: [{ image }] } };
      const metadata = { uid: "1", resourceVersion: `${++versions}`, generation: 1, creationTimestamp };
      const status = { observedGeneration: 1, replicas: 1, availableReplicas: 1, updatedReplicas };
      return kubeObjectOf({ kind: "Deployment", metadata, spec: { template }, status });
    };
    const seen = (each: KubeObject, before: CachedObject | undefined, since = each.metadata.resourceVersion) =>
      withHistory(projectionFor(deployments)(each), before, each.metadata, { since, isCreation: false });
    const whole = seen(at("a"), undefined, "1");
    assert.equal(seen(at("a"), whole).renewedAs, undefined);
    const renewed = seen(at("b", 0), whole);
    assert.equal(renewed.renewedAs, renewed.resourceVersion);
    assert.equal(seen(at("b"), renewed).renewedAs, renewed.resourceVersion);
    // Pods of the former template may still run.
    assert.equal(seen(at("a", 0), renewed).renewedAs, undefined);
    // A list shows that it changed, and not when.
    assert.equal(seen(at("b", 0), whole, "1").renewedAs, undefined);
  });

  it("has what the data was when an annotation chose a source later", () => {
    const match = { "reloader.stakater.com/match": "true" };
    const event = { since: "9", isCreation: false };
    const later =
      (...all: Parameters<typeof source>) =>
      (before: CachedObject) =>
        withHistory(source(...all), before, object({}).metadata, event);
    const chosen = later(match, 3)(source({}, 3));
    assert.equal(chosen.markedAt, born + 3);
    assert.equal(later(match, 5)(chosen).markedAt, born + 3);
    assert.equal(later({}, 5)(source({}, 3)).markedAt, undefined);
  });
});
