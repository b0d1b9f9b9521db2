/** Objects that a binding created. The binding keeps them as specified, and recognizes them after a restart. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { isOfBarrier } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { configMap, LABEL, made, makeHarbor, manifest, newMaker, specOf } from "../controller/made.ts";
import { auditLog } from "../controller/shared.ts";
import { RESTARTED_WITHIN_MS, type TestNamespace } from "../controller/test-namespace.ts";

const recordOf = async (team: TestNamespace, name = "harbor") => (await team.binding(name)).status.targets[0];

/** The writes to HarborClusters and ConfigMaps since a mark. */
async function writesSince(team: TestNamespace, mark: number): Promise<AuditedRequest[]> {
  return (await auditLog().controllerWritesSince(mark)).filter(
    ({ namespace, resource }) => namespace === team.namespace && /harborclusters|configmaps/.test(resource),
  );
}

describe("an object that a binding created", () => {
  it("follows its values and its manifest, and loses fields that the manifest drops", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    const rotated = secretText("rotated");
    await team.secret("bucket", { accessKeyID: rotated });
    await eventually(async () => assert.equal((await team.s3()).accesskey, rotated));
    const { version: _, ...spec } = manifest({ externalURL: "https://new.example.com" }).spec;
    await team.rebind("harbor", specOf(made({ create: { manifest: { metadata: { labels: { new: "yes" } }, spec } } })));
    await team.until("harbor", "Synced");
    const harbor = await team.api.get(team.harborPath());
    assert.equal(harbor.spec.externalURL, "https://new.example.com");
    assert.equal(harbor.spec.version, undefined);
    assert.deepEqual(Object.keys(harbor.metadata.labels).sort(), [LABEL, "new"]);
    assert.equal(harbor.spec.storage.spec.s3.accesskey, rotated);
  });

  it("loses fields that the manifest drops in the first change after it was created", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    const { version: _, ...spec } = manifest().spec;
    await team.rebind("harbor", specOf(made({ create: { manifest: { spec } } })));
    await team.until("harbor", "Synced");
    const { metadata, spec: now } = await team.api.get(team.harborPath());
    assert.equal(now.version, undefined);
    assert.deepEqual(Object.keys(metadata.labels), [LABEL]);
  });

  it("keeps fields that others add to it", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.api.merge(team.harborPath(), { metadata: { annotations: { theirs: "yes" } } });
    await team.editS3({ rootdirectory: "/theirs" });
    await team.rebind("harbor", specOf(made({ create: { manifest: manifest({ version: "3.0.0" }) } })));
    await team.until("harbor", "Synced");
    const { metadata, spec } = await team.api.get(team.harborPath());
    assert.deepEqual([metadata.annotations.theirs, spec.storage.spec.s3.rootdirectory], ["yes", "/theirs"]);
    assert.equal(spec.version, "3.0.0");
  });

  const edits: Record<string, (team: TestNamespace) => Promise<unknown>> = {
    "a value of the manifest is changed": (team) => team.api.merge(team.harborPath(), { spec: { version: "9.9.9" } }),
    "a value of a field is changed": (team) => team.editS3({ accesskey: "edited" }),
    "a value is removed": (team) => team.api.merge(team.harborPath(), { spec: { version: null } }),
    "a list is changed": (team) =>
      team.api.merge(team.harborPath(), {
        spec: { database: { spec: { postgresql: { hosts: [{ host: "other" }] } } } },
      }),
    "its labels are removed": (team) => team.api.merge(team.harborPath(), { metadata: { labels: null } }),
    "its owner is removed": (team) => team.api.merge(team.harborPath(), { metadata: { ownerReferences: null } }),
    "another user applies it by force": (team) =>
      team.applyS3({ accesskey: "theirs", region: "theirs" }, "platform", true),
  };
  for (const [what, edit] of Object.entries(edits)) {
    it(`is restored when ${what}, before and after another correction`, async () => {
      const team = await newMaker();
      const { spec, metadata } = await makeHarbor(team);
      for (let time = 0; time < 2; time++) {
        await edit(team);
        await eventually(async () => {
          const now = await team.api.get(team.harborPath());
          assert.deepEqual(now.spec, spec);
          assert.deepEqual(now.metadata.labels, metadata.labels);
          assert.deepEqual(now.metadata.ownerReferences, metadata.ownerReferences);
        });
        await team.until("harbor", "Synced");
      }
    });
  }

  it("is recreated at once when it is deleted", async () => {
    const team = await newMaker();
    const { spec, metadata } = await makeHarbor(team);
    await team.api.delete(team.harborPath());
    await eventually(async () => {
      const again = await team.api.get(team.harborPath());
      assert.deepEqual(again.spec, spec);
      assert.notEqual(again.metadata.uid, metadata.uid);
      assert.equal((await recordOf(team)).uid, again.metadata.uid);
    });
  });

  it("is not recreated while the binding is suspended, and is afterwards", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.rebind("harbor", { suspend: true });
    await team.until("harbor", "Suspended");
    await team.requestsDuring(() => team.api.delete(team.harborPath()));
    assert.equal(await team.api.find(team.harborPath()), undefined);
    await team.rebind("harbor", { suspend: false });
    await team.until("harbor", "Synced");
    assert.ok(await team.api.find(team.harborPath()));
  });

  it("is recreated with backoff when another user keeps deleting it, and the binding reports it", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    const mark = await auditLog().mark();
    for (let time = 0; time < 3; time++) {
      await eventually(async () => assert.ok(await team.api.find(team.harborPath())));
      await team.api.delete(team.harborPath());
    }
    await eventually(async () => assert.ok(await team.api.find(team.harborPath())));
    await team.api.delete(team.harborPath());
    const { status } = await team.until("harbor", "Contended");
    assert.match(status.conditions[0].message, /HarborCluster \S+\/harbor/);
    await eventually(async () => assert.ok(await team.api.find(team.harborPath())));
    await team.barrier();
    const creates = (await writesSince(team, mark)).filter(({ verb, code }) => verb === "create" && code === 201);
    const times = creates.map(({ at }) => Date.parse(at)).sort((a, b) => a - b);
    const [last = 0, former = 0] = times.reverse();
    assert.ok(times.length <= 5 && last - former >= 1_000 - 1, `${times}`);
  });

  it("waits for an object that is being deleted and has a finalizer", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team);
    await team.api.merge(team.harborPath(), { metadata: { finalizers: ["example.com/hold"] } });
    await team.api.delete(team.harborPath());
    const { status } = await team.until("harbor", "TargetNotFound");
    assert.match(status.conditions[0].message, /is being deleted/);
    await team.api.merge(team.harborPath(), { metadata: { finalizers: null } });
    await team.until("harbor", "Synced");
    assert.notEqual((await team.api.get(team.harborPath())).metadata.uid, metadata.uid);
  });

  it("does not change when its record is lost, because any user can have written the label", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team);
    await team.controller.stop();
    await team.api.merge(`${team.bindingPath("harbor")}/status`, { status: { targets: null } });
    await team.controller.start();
    await team.until("harbor", "Conflict", RESTARTED_WITHIN_MS);
    assert.deepEqual((await team.api.get(team.harborPath())).metadata, metadata);
  });

  it("needs no request when nothing changed, and none after a restart", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.bind("place", specOf(configMap({ create: { manifest: { data: { host: "s3.test" } } } })));
    await team.until("place", "Synced");
    const { metadata } = await team.api.get(team.harborPath());
    await team.controller.stop();
    const mark = await auditLog().mark();
    await team.controller.start();
    await eventually(async () => {
      const reads = (await auditLog().since(mark)).filter(
        ({ namespace, verb }) => namespace === team.namespace && verb === "get",
      );
      assert.ok(reads.some(({ resource }) => resource === "goharbor.io/harborclusters"));
      assert.ok(reads.some(({ resource }) => resource === "configmaps"));
    }, RESTARTED_WITHIN_MS);
    await team.barrier();
    const writes = await auditLog().controllerWritesSince(mark);
    assert.deepEqual(
      writes.filter((write) => write.namespace === team.namespace && !isOfBarrier(write)),
      [],
    );
    assert.deepEqual((await team.api.get(team.harborPath())).metadata, metadata);
  });

  it("is an ordinary target once create is removed: it stays, and the binding owns only the fields", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team);
    const { create: _, ...ordinary } = made();
    await team.rebind("harbor", specOf(ordinary));
    await team.until("harbor", "Synced");
    const harbor = await team.api.get(team.harborPath());
    assert.equal(harbor.metadata.uid, metadata.uid);
    assert.deepEqual(harbor.metadata.labels, { tier: "prod" });
    assert.equal(harbor.metadata.ownerReferences, undefined);
    const names = harbor.metadata.managedFields.filter(({ manager }: AnyObject) => manager.startsWith("inlay/"));
    assert.equal(names.length, 1);
    assert.deepEqual(names[0].fieldsV1, {
      "f:spec": { "f:storage": { "f:spec": { "f:s3": { "f:accesskey": {} } } } },
    });
    await team.unbind("harbor");
    assert.ok(await team.api.find(team.harborPath()));
  });
});

describe("an object that is created once", () => {
  it("does not change afterwards: it is not corrected and not recreated, whatever the binding specifies", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team, { mode: "Once" });
    const { status } = await team.binding("harbor");
    assert.match(status.targets[0].message, / once\b/);
    await team.api.merge(team.harborPath(), { spec: { version: "9.9.9" }, metadata: { labels: null } });
    await team.secret("bucket", { accessKeyID: secretText("rotated") });
    const edited = { create: { manifest: manifest({ version: "3.0.0" }) }, mode: "Once" };
    await team.requestsDuring(() => team.rebind("harbor", specOf(made(edited))));
    assert.equal((await team.api.get(team.harborPath())).spec.version, "9.9.9");
    await team.requestsDuring(() => team.api.delete(team.harborPath()));
    assert.equal(await team.api.find(team.harborPath()), undefined);
    const { status: now } = await team.until("harbor", "Synced");
    assert.equal(now.targets[0].uid, metadata.uid);
    await team.rebind("harbor", specOf(made()));
    await eventually(async () => assert.equal((await team.api.get(team.harborPath())).spec.version, "2.5.0"));
  });

  it("is deleted with its binding", async () => {
    const team = await newMaker();
    await makeHarbor(team, { mode: "Once" });
    await team.unbind("harbor");
    assert.equal(await team.api.find(team.harborPath()), undefined);
  });
});

describe("a controller that is killed while it creates objects", () => {
  const moments: Record<string, (team: TestNamespace) => [path: string, has: (object: AnyObject) => boolean]> = {
    "after it has recorded the objects": (team) => [
      team.path("inlay.dev/v1alpha1", "secretbindings"),
      ({ status }) => status?.targets?.[0].created === true,
    ],
    "after it has created some": (team) => [team.path("goharbor.io/v1beta1", "harborclusters"), () => true],
  };
  for (const [moment, seen] of Object.entries(moments)) {
    it(`${moment} recognizes the objects that it created, creates the rest, and leaves nothing behind`, async () => {
      const team = await newMaker();
      await team.secret("bucket", { accessKeyID: secretText("access") });
      const names = Array.from({ length: 16 }, (_, index) => `harbor-${index}`);
      const [path, has] = seen(team);
      const now = (async () => {
        for await (const { object } of team.api.watch(path, 60)) if (has(object)) return;
      })();
      const bound = names.map((name) => team.bind(name, specOf(made({ name }))));
      await now;
      await team.controller.stop("SIGKILL");
      await Promise.all(bound);
      const before = new Map<string, string>();
      for (const name of names) {
        const harbor = await team.api.find(team.harborPath(name));
        if (harbor === undefined) continue;
        before.set(name, harbor.metadata.uid);
        assert.equal((await recordOf(team, name)).created, true);
      }
      // Some objects are deleted, and some targets name another object, while no controller runs.
      for (const name of names.slice(0, 5)) await team.api.delete(team.bindingPath(name));
      for (const name of names.slice(5, 10)) await team.rebind(name, specOf(made({ name: `${name}-b` })));
      await team.controller.start();
      const deleted = names.slice(0, 5).map(async (name) => {
        await team.untilGone(team.bindingPath(name), RESTARTED_WITHIN_MS);
        await team.untilGone(team.harborPath(name));
      });
      const moved = names.slice(5, 10).map(async (name) => {
        await team.until(name, "Synced", RESTARTED_WITHIN_MS);
        assert.ok(await team.api.find(team.harborPath(`${name}-b`)));
        await team.untilGone(team.harborPath(name));
      });
      const kept = names.slice(10).map(async (name) => {
        await team.until(name, "Synced", RESTARTED_WITHIN_MS);
        const { metadata } = await team.api.get(team.harborPath(name));
        assert.equal(metadata.uid, before.get(name) ?? metadata.uid);
      });
      await Promise.all([...deleted, ...moved, ...kept]);
    });
  }
});
