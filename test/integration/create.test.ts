/** Objects that a binding makes once all values are there, keeps as they are said to be, and takes away with it. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import type { AuditedRequest } from "../controller/audit.ts";
import { isOfBarrier } from "../controller/barrier.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/hunted.ts";
import {
  ALL,
  accessKey,
  bucket,
  configMap,
  LABEL,
  made,
  makeHarbor,
  manifest,
  newMaker,
  ownRules,
  specOf,
} from "../controller/made.ts";
import { auditLog } from "../controller/shared.ts";
import { fieldsOf, newTeam, RESTARTED_WITHIN_MS, type Team } from "../controller/team.ts";

const FINALIZER = "inlay.dev/release";

const recordOf = async (team: Team, name = "harbor") => (await team.binding(name)).status.targets[0];

async function untilEvent(team: Team, binding: string, reason: string, note: RegExp): Promise<void> {
  await eventually(async () => {
    const events = await team.events(binding);
    assert.ok(
      events.some((event) => event.reason === reason && note.test(event.note)),
      JSON.stringify(events),
    );
  });
}

/** The writes to HarborClusters and ConfigMaps since a mark. */
async function writesSince(team: Team, mark: number): Promise<string[]> {
  return (await requestsSince(team, mark)).map(({ verb, code }) => `${verb} ${code}`);
}

async function requestsSince(team: Team, mark: number): Promise<AuditedRequest[]> {
  return (await auditLog().controllerWritesSince(mark)).filter(
    ({ namespace, resource }) => namespace === team.namespace && /harborclusters|configmaps/.test(resource),
  );
}

describe("a target with create", () => {
  it("is made when its last value is there, in one request, with all values in it", async () => {
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
    await untilEvent(team, "harbor", "Created", /made HarborCluster .*\/harbor/);
  });

  it("says whose it is: by label, owner and record", async () => {
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

  it("is deleted when the binding names it no more, or another in its place", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.rebind("harbor", specOf(made({ name: "other" })));
    await team.until("harbor", "Synced");
    await team.untilGone(team.harborPath());
    assert.ok(await team.api.find(team.harborPath("other")));
    await team.unbind("harbor");
    assert.equal(await team.api.find(team.harborPath("other")), undefined);
  });

  it("stays with onRelease: Retain, with no mark of Inlay left on it", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team, { onRelease: "Retain" });
    assert.equal(metadata.ownerReferences, undefined);
    assert.deepEqual((await team.binding("harbor")).metadata.finalizers ?? [], []);
    await team.unbind("harbor");
    await eventually(async () => {
      const harbor = await team.api.get(team.harborPath());
      assert.deepEqual(harbor.metadata.labels, { tier: "prod" });
      assert.deepEqual(harbor.metadata.managedFields ?? [], []);
    });
    await untilEvent(team, "harbor", "Retained", /HarborCluster/);
  });

  it("stays with spec.defaults.onRelease: Retain, after it was corrected too", async () => {
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

  it("that is gone already, or was made anew by others, keeps nobody", async () => {
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

describe("an object that a binding did not make", () => {
  it("is never touched, not even with onConflict: Force, and is made once it is gone", async () => {
    const team = await newMaker();
    await team.harbor();
    const before = await team.api.get(team.harborPath());
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.bind("harbor", specOf(made({ onConflict: "Force" })));
    const { status, metadata } = await team.until("harbor", "Conflict");
    assert.match(status.conditions[0].message, /exists and was not made by this binding/);
    assert.deepEqual(metadata.finalizers ?? [], []);
    assert.deepEqual(await team.api.get(team.harborPath()), before);
    await team.api.delete(team.harborPath());
    await team.until("harbor", "Synced");
    assert.equal((await team.api.get(team.harborPath())).metadata.labels[LABEL], metadata.uid);
  });

  it("is another binding's: the one that was first has it, the other has it after", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.bind("second", specOf(made()));
    await team.until("second", "Conflict");
    await team.unbind("harbor");
    const { metadata } = await team.until("second", "Synced");
    assert.equal((await team.api.get(team.harborPath())).metadata.labels[LABEL], metadata.uid);
  });

  it("stays another's when two bindings make one name at the same moment", async () => {
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

  it("is first for its maker, whoever is older", async () => {
    const team = await newMaker();
    const other = { ...made(), create: undefined, fields: [{ path: "spec.version", template: "1" }] };
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

  it("is left alone when create is added for it, and the fields of before are released as they were to be", async () => {
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

describe("an object that a binding made", () => {
  it("follows its values and its manifest, and loses what the manifest drops", async () => {
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

  it("loses what the manifest drops as the first thing after it was made", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    const { version: _, ...spec } = manifest().spec;
    await team.rebind("harbor", specOf(made({ create: { manifest: { spec } } })));
    await team.until("harbor", "Synced");
    const { metadata, spec: now } = await team.api.get(team.harborPath());
    assert.equal(now.version, undefined);
    assert.deepEqual(Object.keys(metadata.labels), [LABEL]);
  });

  it("keeps what others add to it", async () => {
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

  const edits: Record<string, (team: Team) => Promise<unknown>> = {
    "a value of the manifest is changed": (team) => team.api.merge(team.harborPath(), { spec: { version: "9.9.9" } }),
    "a value of a field is changed": (team) => team.editS3({ accesskey: "edited" }),
    "a value is removed": (team) => team.api.merge(team.harborPath(), { spec: { version: null } }),
    "a list is changed": (team) =>
      team.api.merge(team.harborPath(), {
        spec: { database: { spec: { postgresql: { hosts: [{ host: "other" }] } } } },
      }),
    "its labels are taken off": (team) => team.api.merge(team.harborPath(), { metadata: { labels: null } }),
    "its owner is taken off": (team) => team.api.merge(team.harborPath(), { metadata: { ownerReferences: null } }),
    "another applies it by force": (team) => team.applyS3({ accesskey: "theirs", region: "theirs" }, "platform", true),
  };
  for (const [what, edit] of Object.entries(edits)) {
    it(`is put right when ${what}, before and after it was corrected once`, async () => {
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

  it("is made again at once when it is deleted", async () => {
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

  it("is not made again while the binding is suspended, and is after", async () => {
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

  it("is made again more and more rarely when somebody keeps deleting it, and the binding says so", async () => {
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
    assert.match(status.conditions[0].message, /keeps changing or deleting HarborCluster .*harbor/);
    await eventually(async () => assert.ok(await team.api.find(team.harborPath())));
    await team.barrier();
    const creates = (await requestsSince(team, mark)).filter(({ verb, code }) => verb === "create" && code === 201);
    const times = creates.map(({ at }) => Date.parse(at)).sort((a, b) => a - b);
    const [last = 0, former = 0] = times.reverse();
    assert.ok(times.length <= 5 && last - former >= 1_000 - 1, `${times}`);
  });

  it("waits for one that is being deleted and held by a finalizer", async () => {
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

  it("is the binding's still when its record is lost, told by its label", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team);
    await team.controller.stop();
    await team.api.merge(`${team.bindingPath("harbor")}/status`, { status: { targets: null } });
    await team.controller.start();
    await team.until("harbor", "Synced", RESTARTED_WITHIN_MS);
    await eventually(async () => assert.equal((await recordOf(team)).uid, metadata.uid), RESTARTED_WITHIN_MS);
    await team.unbind("harbor");
    assert.equal(await team.api.find(team.harborPath()), undefined);
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

  it("is an ordinary target once create is taken out: it stays, and only the fields are the binding's", async () => {
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
    assert.deepEqual((await team.binding("harbor")).metadata.finalizers ?? [], []);
    await team.unbind("harbor");
    assert.ok(await team.api.find(team.harborPath()));
  });
});

describe("an object that is made once", () => {
  it("is left alone from then on: not corrected, not made again when it is gone, whatever the binding says of it", async () => {
    const team = await newMaker();
    const { metadata } = await makeHarbor(team, { mode: "Once" });
    const { status } = await team.binding("harbor");
    assert.match(status.conditions[0].message, /made once/);
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

describe("a controller that is killed while it makes objects", () => {
  const moments: Record<string, (team: Team) => [path: string, has: (object: AnyObject) => boolean]> = {
    "when it has noted what it is about to make": (team) => [
      team.path("inlay.dev/v1alpha1", "secretbindings"),
      ({ status }) => status?.targets?.[0].created === true,
    ],
    "when it has made some": (team) => [team.path("goharbor.io/v1beta1", "harborclusters"), () => true],
  };
  for (const [moment, seen] of Object.entries(moments)) {
    it(`${moment} knows all that it made, makes the rest, and leaves nothing behind`, async () => {
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
      // Some are deleted, and some name another object, while nobody looks.
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

describe("what is made", () => {
  it("may be of a built-in kind, without fields, and with a manifest as the server would not spell it", async () => {
    const deployments = { apiGroups: ["apps"], resources: ["deployments"], verbs: ALL };
    const team = await newTeam({ rules: [...ownRules(ALL), deployments] });
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
    // What others write beside it is no reason to write.
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

// The last here: the garbage collector looks for new kinds twice a minute, and has found this one by now.
describe("an object whose binding could not delete it", () => {
  it("goes with its owner", async () => {
    const team = await newMaker();
    await makeHarbor(team);
    await team.controller.stop();
    await team.api.merge(team.bindingPath("harbor"), { metadata: { finalizers: null } });
    await team.unbind("harbor");
    await team.untilGone(team.harborPath(), 60_000);
    await team.controller.start();
  }).timeout(120_000);
});
