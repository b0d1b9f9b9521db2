/** Shows a kind whose versions change: the binding still owns and releases what it wrote in an earlier version. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { createNamespace, fieldsOf, type TestNamespace } from "../controller/test-namespace.ts";
import { KAFKA, PRUNING, Versioned, v1, v1beta2, v1modern } from "../controller/versioned.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WITHIN_A_MINUTE_MS = 60_000;
let kinds = 0;

/** Creates a kind with the version v1alpha1 only, one object, and a binding that has written it. */
async function written(): Promise<{ team: TestNamespace; group: string; value: string; crd: string }> {
  const group = `versions-${++kinds}.example.com`;
  const rule = { apiGroups: [group], resources: ["items"], verbs: ["get", "list", "watch", "patch"] };
  const team = await createNamespace({ rules: [{ apiGroups: [""], resources: ["secrets"], verbs: rule.verbs }, rule] });
  const crd = `${CRDS}/items.${group}`;
  await team.api.create(CRDS, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `items.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind: "Item", listKind: "ItemList", plural: "items", singular: "item" },
      versions: [version("v1alpha1", { storage: true })],
    },
  });
  const object = { apiVersion: `${group}/v1alpha1`, kind: "Item", metadata: { name: "item" }, spec: { kept: "x" } };
  await eventually(() => team.api.create(team.path(`${group}/v1alpha1`, "items"), object));
  const value = secretText("token");
  await team.secret("bucket", { token: value });
  await team.bind("item", spec(`${group}/v1alpha1`));
  await team.until("item", "Synced", 30_000);
  assert.deepEqual((await team.api.get(`${team.path(`${group}/v1alpha1`, "items")}/item`)).spec, {
    kept: "x",
    token: value,
  });
  return { team, group, value, crd };
}

function version(name: string, { storage = false, served = true, hasToken = true } = {}): object {
  const properties = { kept: { type: "string" }, ...(hasToken && { token: { type: "string" } }) };
  const schema = { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties } } } };
  return { name, served, storage, schema };
}

const spec = (apiVersion: string) => ({
  sources: [{ secret: { name: "bucket" } }],
  targets: [
    {
      apiVersion,
      kind: "Item",
      name: "item",
      onRelease: "Remove",
      fields: [{ path: "spec.token", from: { source: "bucket", key: "token" } }],
    },
  ],
});

/** Changes the kind to v1, after which v1alpha1 is no longer served. */
async function moveOn({ team, group, crd }: { team: TestNamespace; group: string; crd: string }): Promise<string> {
  await team.api.merge(crd, {
    spec: { versions: [version("v1", { storage: true }), version("v1alpha1", { served: false })] },
  });
  const item = `${team.path(`${group}/v1`, "items")}/item`;
  await eventually(async () => {
    assert.ok(await team.api.find(item));
    assert.equal(await team.api.find(`${team.path(`${group}/v1alpha1`, "items")}/item`), undefined);
  });
  return item;
}

describe("a kind that is served in another version than before", () => {
  it("is released in that version when the binding is deleted", async () => {
    const kind = await written();
    const item = await moveOn(kind);
    await kind.team.unbind("item", 30_000);
    assert.deepEqual((await kind.team.api.get(item)).spec, { kept: "x" });
  });

  it("is the same object for the record of the binding, also when the binding names the new version", async () => {
    const kind = await written();
    const item = await moveOn(kind);
    const rotated = secretText("rotated");
    await kind.team.secret("bucket", { token: rotated });
    await kind.team.rebind("item", spec(`${kind.group}/v1`));
    const { status } = await kind.team.until("item", "Synced", 30_000);
    assert.equal(status.targets.length, 1);
    assert.deepEqual((await kind.team.api.get(item)).spec, { kept: "x", token: rotated });
    await kind.team.unbind("item");
    assert.deepEqual((await kind.team.api.get(item)).spec, { kept: "x" });
  });
});

describe("a kind whose CRD changes, but none of its objects", () => {
  it("has the loss of a field and of a version reported", async () => {
    const [dropped, moved] = [await written(), await written()];
    const path = `${dropped.team.path(`${dropped.group}/v1alpha1`, "items")}/item`;
    const { metadata } = await dropped.team.api.get(path);
    await dropped.team.api.merge(dropped.crd, {
      spec: { versions: [version("v1alpha1", { storage: true, hasToken: false })] },
    });
    await moveOn(moved);
    // It is written in v1beta2.
    const named = await Versioned.install([v1, v1beta2]);
    await named.make("main", { kafka: KAFKA });
    await named.bind("main");
    await named.team.until("main", "Synced");
    await named.become([v1, v1beta2].map(({ name, spec: { token: _, ...spec } }) => ({ name, spec })));
    const [{ status }] = await Promise.all([
      dropped.team.until("item", "UnknownField", WITHIN_A_MINUTE_MS),
      moved.team.until("item", "KindNotFound", WITHIN_A_MINUTE_MS),
      named.team.until("main", "UnknownField", WITHIN_A_MINUTE_MS),
    ]);
    assert.match(status.conditions[0].message, /spec\.token/);
    assert.deepEqual(status.targets[0].paths, ["spec.token"]);
    assert.equal((await dropped.team.api.get(path)).metadata.resourceVersion, metadata.resourceVersion);
  });
});

describe("a kind whose versions have the conversion None", () => {
  it("loses no field by fields, no-op writes and releases, where another version has all fields", async () => {
    const items = await Versioned.install([v1, v1beta2]);
    const { team } = items;
    for (const name of ["kept", "removed"]) {
      await items.make(name, { kafka: KAFKA });
      await items.bind(name, { onRelease: name === "kept" ? "Retain" : "Remove" });
      await team.until(name, "Synced");
      await items.until(name, { token: items.value });
    }
    await items.rotate();
    const found = await items.until("kept", { token: items.value });
    assert.deepEqual(fieldsOf(found, team.manager("kept")), { "f:spec": { "f:token": {} } });
    // Now no manager owns the fields, and the binding applies the same value again.
    await team.api.jsonPatch(items.path("v1beta2", "kept"), [
      { op: "replace", path: "/metadata/managedFields", value: [{}] },
    ]);
    await eventually(async () => assert.ok(fieldsOf(await items.get("kept"), team.manager("kept"))));
    await items.until("removed", { token: items.value });
    await Promise.all(["kept", "removed"].map((name) => team.unbind(name)));
    await items.until("kept", { token: items.value });
    await items.until("removed", {});
  });

  it("allows others to apply a field after a write in a version that lacks it", async () => {
    const items = await Versioned.install([v1, v1beta2]);
    const { team } = items;
    await items.make("main", { kafka: { version: "4.1" } });
    const object = (version: string, spec: object) => ({
      apiVersion: `${items.group}/${version}`,
      kind: "Item",
      metadata: { name: "main" },
      spec,
    });
    // As earlier releases of Inlay did, which did not check versions.
    await team.api.apply(items.path("v1", "main"), object("v1", { token: items.value }), team.manager("main"));
    const whole = () =>
      team.api.apply(items.path("v1beta2", "main"), object("v1beta2", { kafka: KAFKA }), "gitops", true);
    await assert.rejects(whole(), /not declared in schema/);
    await items.bind("main");
    await team.until("main", "Synced");
    await whole();
    await items.until("main", { token: items.value });
  });

  it("loses no field by a restart", async () => {
    const items = await Versioned.install([v1, v1beta2]);
    await items.make("main", { kafka: KAFKA });
    const workload = { apiVersion: `${items.group}/v1`, kind: "Item", name: "main", restartPath: "spec.restart" };
    await items.team.bind("main", { sources: [{ secret: { name: "bucket" } }], rollout: { targets: [workload] } });
    await items.team.until("main", "Synced");
    await items.rotate();
    const { spec } = await eventually(async () => {
      const found = await items.get("main");
      assert.ok(found.spec.restart);
      return found;
    });
    assert.deepEqual(spec, { kafka: KAFKA, restart: spec.restart });
  });

  it("loses no field of an object that the binding creates, reverts, and deletes while a finalizer delays that", async () => {
    const items = await Versioned.install([v1, v1beta2]);
    const { team } = items;
    await items.bind("made", { create: { manifest: { spec: { other: "here" } } }, onRelease: "Remove" });
    await team.until("made", "Synced");
    const path = items.path("v1beta2", "made");
    await team.api.merge(path, { metadata: { finalizers: ["example.com/hold"] }, spec: { kafka: KAFKA } });
    await team.api.merge(path, { spec: { other: "gone" } });
    await items.until("made", { other: "here", token: items.value });
    await items.rotate();
    await items.until("made", { other: "here", token: items.value });
    await team.unbind("made");
    const { metadata } = await items.until("made", { other: "here", token: items.value });
    assert.ok(metadata.deletionTimestamp);
    await team.api.merge(path, { metadata: { finalizers: null } });
  });

  it("is not written where no version has all fields and the object would lose some of them, until they are removed", async () => {
    const items = await Versioned.install([v1modern, v1beta2]);
    const { team } = items;
    await items.make("whole", { kafka: { version: "4.1" } });
    await items.bind("whole");
    await team.until("whole", "Synced");
    await items.make("main", { kafka: KAFKA });
    await items.bind("main");
    const { status } = await team.until("main", "VersionDropsFields");
    const { message } = status.conditions.find(({ type }: { type: string }) => type === "Ready");
    for (const word of ["spec.kafka.replicas, spec.kafka.storage", `${items.group}/v1beta2`])
      assert.ok(message.includes(word), message);
    assert.equal(message.split(`${team.namespace}/main`).length, 2, message);
    await items.until("main", {});
    await team.api.merge(items.path("v1beta2", "main"), { spec: { kafka: { replicas: null, storage: null } } });
    await team.until("main", "Synced");
    await team.api.merge(items.path("v1beta2", "main"), { spec: { kafka: KAFKA } });
    const other = [{ path: "spec.other", from: { source: "bucket", key: "token" } }];
    await team.rebind("main", items.spec("main", { fields: other }));
    await team.until("main", "VersionDropsFields");
    await items.until("main", { token: items.value });
    await team.rebind("main", items.spec("main", { apiVersion: `${items.group}/v1beta2` }));
    await team.until("main", "Synced");
    await items.rotate();
    await items.until("main", { token: items.value });
  });

  it("keeps a resource inside, a null and an empty object where one version prunes or defaults them", async () => {
    const { own, other } = PRUNING;
    const versions = [
      { ...own, gone: other.gone },
      { ...own, roles: { type: "string" } },
    ].map((each) => [
      { name: "v1", spec: each },
      { name: "v1beta2", spec: other },
    ]);
    const [whole, none] = await Promise.all(versions.map((each) => Versioned.install(each)));
    assert.ok(whole && none);
    for (const items of [whole, none]) {
      await items.make("main", PRUNING.object);
      await items.bind("main");
    }
    await whole.team.until("main", "Synced");
    assert.deepEqual((await whole.get("main")).spec, { ...PRUNING.object, token: whole.value });
    const { status } = await none.team.until("main", "VersionDropsFields");
    const { message } = status.conditions.find(({ type }: { type: string }) => type === "Ready");
    assert.ok(message.includes("spec.gone, spec.none, spec.open.a.b, spec.part.apiVersion, spec.part.kind"), message);
    assert.deepEqual((await none.get("main")).spec, PRUNING.object);
  });

  it("is not written in any version where the stored version lacks a field that the object has", async () => {
    const items = await Versioned.install([v1, v1beta2]);
    const { team } = items;
    await items.make("main", { kafka: KAFKA });
    await items.become([v1beta2, v1]);
    await items.bind("main", { apiVersion: `${items.group}/v1beta2` });
    const { status } = await team.until("main", "VersionDropsFields");
    assert.match(status.conditions[0].message, /add the fields to the schema of \S+\/v1 in the CRD, or remove/);
    await items.until("main", {});
    await team.api.merge(items.path("v1beta2", "main"), { spec: { other: "written by another user" } });
    await team.until("main", "Synced");
    const { spec } = await items.get("main");
    assert.deepEqual(spec, { kafka: { version: KAFKA.version }, other: "written by another user", token: items.value });
  });

  it("has a new version noticed before the next write", async () => {
    const items = await Versioned.install([{ ...v1beta2, name: "v1" }]);
    const { team } = items;
    await items.make("main", {}, "v1");
    await items.bind("main");
    await team.until("main", "Synced");
    await items.become([v1, v1beta2]);
    await team.api.merge(items.path("v1beta2", "main"), { spec: { kafka: KAFKA } });
    await items.rotate();
    await items.until("main", { token: items.value });
  });

  it("differs from a Kubernetes kind whose versions convert: a HorizontalPodAutoscaler keeps its metrics", async () => {
    const verbs = ["get", "list", "watch", "patch"];
    const rules = [{ apiGroups: ["autoscaling"], resources: ["horizontalpodautoscalers"], verbs }];
    const team = await createNamespace({ rules: [{ apiGroups: [""], resources: ["secrets"], verbs }, ...rules] });
    const metrics = [
      { type: "Resource", resource: { name: "memory", target: { type: "Utilization", averageUtilization: 70 } } },
    ];
    const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
    const scalers = team.path("autoscaling/v2", "horizontalpodautoscalers");
    await team.api.create(scalers, { metadata: { name: "web" }, spec: { scaleTargetRef, maxReplicas: 3, metrics } });
    await team.secret("bucket", { most: "5" });
    const fields = [{ path: "spec.maxReplicas", from: { source: "bucket", key: "most" }, as: "integer" }];
    const target = {
      apiVersion: "autoscaling/v1",
      kind: "HorizontalPodAutoscaler",
      name: "web",
      fields,
      onConflict: "Force",
    };
    await team.bind("web", { sources: [{ secret: { name: "bucket" } }], targets: [target] });
    await team.until("web", "Synced");
    const { spec } = await team.api.get(`${scalers}/web`);
    assert.deepEqual([spec.maxReplicas, spec.metrics], [5, metrics]);
  });
});
