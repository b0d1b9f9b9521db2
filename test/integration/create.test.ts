/** Objects that a binding creates once all values exist, keeps as specified, and deletes with itself. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { ALL, accessKey, bucket, LABEL, made, makeHarbor, newMaker, ownRules, specOf } from "../controller/made.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, fieldsOf, type TestNamespace } from "../controller/test-namespace.ts";

const FINALIZER = "inlay.dev/release";

async function untilEvent(team: TestNamespace, binding: string, reason: string, note: RegExp): Promise<void> {
  await eventually(async () => {
    const events = await team.events(binding);
    assert.ok(
      events.some((event) => event.reason === reason && note.test(event.note)),
      JSON.stringify(events),
    );
  });
}

/** The writes to HarborClusters and ConfigMaps since a mark. */
async function writesSince(team: TestNamespace, mark: number): Promise<string[]> {
  const requests = await auditLog().controllerWritesSince(mark);
  return requests
    .filter(({ namespace, resource }) => namespace === team.namespace && /harborclusters|configmaps/.test(resource))
    .map(({ verb, code }) => `${verb} ${code}`);
}

describe("a target with create", () => {
  it("is created when its last value exists, in one request, with all values in it", async () => {
    const team = await newMaker();
    const mark = await auditLog().mark();
    await team.bind("harbor", specOf(made()));
    await team.until("harbor", "SourceNotFound");
    await team.secret("bucket", { other: "x" });
    await team.until("harbor", "KeyNotFound");
    assert.equal(await team.api.find(team.harborPath()), undefined);
    const key = secretText("access");
    await team.secret("bucket", { accessKeyID: key });
    await team.until("harbor", "Synced");
    const harbor = await team.api.get(team.harborPath());
    const { accesskey, region } = harbor.spec.storage.spec.s3;
    assert.deepEqual([accesskey, region, harbor.spec.version], [key, "eu-central-1", "2.5.0"]);
    assert.equal(harbor.metadata.generation, 1);
    assert.deepEqual(await writesSince(team, mark), ["create 201"]);
    await untilEvent(team, "harbor", "Created", /HarborCluster \S+\/harbor/);
  });

  it("names its binding by label, owner and record", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team);
    const binding = await team.binding("harbor");
    const { uid } = binding.metadata;
    assert.deepEqual(metadata.labels, { tier: "prod", [LABEL]: uid });
    assert.deepEqual(metadata.ownerReferences, [
      {
        apiVersion: "inlay.dev/v1alpha1",
        kind: "SecretBinding",
        name: "harbor",
        uid,
        controller: false,
        blockOwnerDeletion: false,
      },
    ]);
    assert.deepEqual(binding.metadata.finalizers, [FINALIZER]);
    const [record] = binding.status.targets;
    assert.equal(record.created, true);
    assert.equal(record.uid, metadata.uid);
    assert.deepEqual(record.paths, [accessKey.path]);
    assert.equal(record.onRelease, "Remove");
  });

  it("is deleted with its binding", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.unbind("harbor");
    assert.equal(await team.api.find(team.harborPath()), undefined);
    await untilEvent(team, "harbor", "Removed", /deleted HarborCluster/);
  });

  it("is deleted when the binding does not name it any more, or names another object", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.rebind("harbor", specOf(made({ name: "other" })));
    await team.until("harbor", "Synced");
    await team.untilGone(team.harborPath());
    assert.ok(await team.api.find(team.harborPath("other")));
    await team.unbind("harbor");
    assert.equal(await team.api.find(team.harborPath("other")), undefined);
  });

  it("stays with onRelease: Retain, without any mark of Inlay", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team, { onRelease: "Retain" });
    assert.equal(metadata.ownerReferences, undefined);
    assert.deepEqual((await team.binding("harbor")).metadata.finalizers, [FINALIZER]);
    await team.unbind("harbor");
    const harbor = await team.api.get(team.harborPath());
    assert.deepEqual(harbor.metadata.labels, { tier: "prod" });
    assert.deepEqual(harbor.metadata.managedFields ?? [], []);
    await untilEvent(team, "harbor", "Retained", /HarborCluster/);
  });

  it("stays with spec.defaults.onRelease: Retain, also after a correction", async () => {
    const team = await newMaker();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor", { ...specOf(made()), defaults: { onRelease: "Retain" } });
    await team.until("harbor", "Synced");
    await team.api.merge(team.harborPath(), { spec: { version: "9.9.9" } });
    await eventually(async () => assert.equal((await team.api.get(team.harborPath())).spec.version, "2.5.0"));
    await team.until("harbor", "Synced");
    await team.unbind("harbor");
    await eventually(async () => {
      const { labels, managedFields } = (await team.api.get(team.harborPath())).metadata;
      assert.deepEqual(labels, { tier: "prod" });
      assert.deepEqual(managedFields?.filter(({ manager }: AnyObject) => manager.startsWith("inlay")) ?? [], []);
    });
  });

  it("that is deleted already, or was recreated by others, does not block the deletion of the binding", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.rebind("harbor", { suspend: true });
    await team.until("harbor", "Suspended");
    await team.api.delete(team.harborPath());
    await team.harbor();
    const { metadata } = await team.api.get(team.harborPath());
    await team.unbind("harbor");
    assert.deepEqual((await team.api.get(team.harborPath())).metadata, metadata);
  });
});

describe("an object that a binding did not create", () => {
  it("never changes, whatever user set the binding's label on it", async () => {
    const team = await newMaker();
    const { metadata } = await team.bind("harbor", specOf(made()));
    await team.until("harbor", "SourceNotFound");
    await team.harbor();
    const forged = await team.api.merge(team.harborPath(), { metadata: { labels: { [LABEL]: metadata.uid } } });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.until("harbor", "Conflict");
    await team.unbind("harbor");
    assert.deepEqual(await team.api.get(team.harborPath()), forged);
  });

  it("never changes, whatever user set the label on it while the binding's account was not allowed to create it", async () => {
    const team = await newMaker(ALL.filter((verb) => verb !== "create"));
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const { metadata } = await team.bind("harbor", specOf(made()));
    const { status } = await team.until("harbor", "Forbidden");
    assert.equal(status.targets[0].created, undefined);
    await team.harbor();
    const forged = await team.api.merge(team.harborPath(), { metadata: { labels: { [LABEL]: metadata.uid } } });
    await team.until("harbor", "Conflict");
    await team.unbind("harbor");
    assert.deepEqual(await team.api.get(team.harborPath()), forged);
  });

  it("never changes, even with onConflict: Force, and is created once it is deleted", async () => {
    const team = await newMaker();
    await team.harbor();
    const before = await team.api.get(team.harborPath());
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor", specOf(made({ onConflict: "Force" })));
    const { status, metadata } = await team.until("harbor", "Conflict");
    assert.match(status.conditions[0].message, /HarborCluster \S+\/harbor/);
    assert.deepEqual(metadata.finalizers ?? [], []);
    assert.deepEqual(await team.api.get(team.harborPath()), before);
    await team.api.delete(team.harborPath());
    await team.until("harbor", "Synced");
    assert.equal((await team.api.get(team.harborPath())).metadata.labels[LABEL], metadata.uid);
  });

  it("of another binding stays with that binding, and belongs to the second one after its deletion", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.bind("second", specOf(made()));
    await team.until("second", "Conflict");
    await team.unbind("harbor");
    const { metadata } = await team.until("second", "Synced");
    assert.equal((await team.api.get(team.harborPath())).metadata.labels[LABEL], metadata.uid);
  });

  it("stays with its binding when two bindings create one name at the same moment", async () => {
    const team = await newMaker();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const names = Array.from({ length: 6 }, (_, index) => `maker-${index}`);
    const bindings = await Promise.all(names.map((name) => team.bind(name, specOf(made()))));
    const reasons = await eventually(async () => {
      const all = await Promise.all(names.map((name) => team.binding(name)));
      const found = all.map(({ status }) => status?.conditions?.[0].reason);
      assert.deepEqual([...found].sort(), [...Array(5).fill("Conflict"), "Synced"]);
      return found;
    });
    const winner = bindings[reasons.indexOf("Synced")]?.metadata.uid;
    const { metadata } = await team.api.get(team.harborPath());
    assert.equal(metadata.labels[LABEL], winner);
    assert.equal(metadata.generation, 1);
    for (const name of names.filter((_, index) => reasons[index] !== "Synced")) await team.unbind(name);
    assert.deepEqual((await team.api.get(team.harborPath())).metadata, metadata);
  });

  it("belongs to the binding that created it, even if another binding is older", async () => {
    const team = await newMaker();
    const other = { ...made(), create: undefined, fields: [{ path: "spec.version", template: "2.9.0" }] };
    await team.bind("a-first", specOf(other));
    await team.until("a-first", "TargetNotFound");
    await team.rebind("a-first", { suspend: true });
    await team.until("a-first", "Suspended");
    await makeHarbor(team);
    const mark = await auditLog().mark();
    await team.rebind("a-first", { suspend: false, ...specOf({ ...other, fields: [accessKey], onConflict: "Force" }) });
    await team.until("a-first", "Contended");
    await team.until("harbor", "Synced");
    assert.deepEqual(await writesSince(team, mark), []);
    await team.unbind("harbor");
    await team.until("a-first", "TargetNotFound");
  });

  it("does not change when create is added for it, and the fields from before are released as specified", async () => {
    const team = await newMaker();
    const key = await team.boundHarbor();
    await team.rebind("harbor-s3", specOf(made()));
    await team.until("harbor-s3", "Conflict");
    assert.equal((await team.s3()).accesskey, key);
    await team.unbind("harbor-s3");
    await eventually(async () => {
      const harbor = await team.api.get(team.harborPath());
      assert.equal(fieldsOf(harbor, team.manager("harbor-s3")), undefined);
    });
    assert.equal((await team.s3()).accesskey, key);
  });
});

describe("a created object", () => {
  it("may be of a built-in kind, without fields, and with a manifest in another notation than the server's", async () => {
    const deployments = { apiGroups: ["apps"], resources: ["deployments"], verbs: ALL };
    const team = await createNamespace({ rules: [...ownRules(ALL), deployments] });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const labels = { app: "web" };
    const container = {
      name: "web",
      image: "web:1",
      resources: { limits: { cpu: "1000m", memory: "0.5Gi" } },
      ports: [{ containerPort: 80 }],
    };
    const template = {
      metadata: { labels, creationTimestamp: null },
      spec: { containers: [container], tolerations: [{ key: "x" }], volumes: [{ name: "v", emptyDir: {} }] },
    };
    const deployment = { spec: { replicas: 0, selector: { matchLabels: labels }, template } };
    await team.bind("web", {
      sources: bucket,
      targets: [{ apiVersion: "apps/v1", kind: "Deployment", name: "web", create: { manifest: deployment } }],
    });
    await team.until("web", "Synced");
    const path = `${team.path("apps/v1", "deployments")}/web`;
    const { metadata } = await team.api.get(path);
    // A field that another user writes beside it causes no write.
    await team.api.merge(path, { spec: { revisionHistoryLimit: 3 }, metadata: { annotations: { a: "b" } } });
    const requests = await team.requestsDuring(() => team.api.merge(path, { metadata: { annotations: { a: "c" } } }));
    assert.deepEqual(
      requests.filter(({ verb }) => verb !== "get"),
      [],
    );
    await team.api.merge(path, { spec: { replicas: 2 } });
    await eventually(async () => assert.equal((await team.api.get(path)).spec.replicas, 0));
    const now = await team.api.get(path);
    assert.equal(now.spec.revisionHistoryLimit, 3);
    assert.equal(now.metadata.uid, metadata.uid);
  });
});

// This suite is the last, because the garbage collector looks for new kinds twice a minute, and has found this one by now.
describe("an object that its binding could not delete", () => {
  it("is deleted with its owner", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.controller.stop();
    await team.api.merge(team.bindingPath("harbor"), { metadata: { finalizers: null } });
    await team.unbind("harbor");
    await team.untilGone(team.harborPath(), 60_000);
    await team.controller.start();
  }).timeout(120_000);
});
