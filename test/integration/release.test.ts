/** Shows how fields are released when the binding is deleted. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import {
  apiVersionOf,
  createObject,
  installKind,
  type Kind,
  mayWrite,
  objectPath,
  removeKind,
} from "../controller/kinds.ts";
import { secretText } from "../controller/leak-detector.ts";
import {
  accessKeyFrom,
  createNamespaceWithNest,
  FINALIZER,
  finalizersOf,
  nest,
  nestIn,
  nestSpec,
  untilEvent,
} from "../controller/released.ts";
import { auditLog } from "../controller/shared.ts";
import {
  accessKeySpec,
  createNamespace,
  fieldsOf,
  harborTarget,
  RESTARTED_WITHIN_MS,
  s3Fields,
  type TestNamespace,
} from "../controller/test-namespace.ts";

/** Requires one of three fields when it has a size. Two others have defaults, and one of those is required. */
const pick: Kind = {
  group: "release.example.com",
  kind: "Pick",
  plural: "picks",
  spec: {
    type: "object",
    required: ["mode"],
    properties: {
      ...Object.fromEntries(["a", "b", "c", "name", "size"].map((name) => [name, { type: "string" }])),
      mode: { type: "string", default: "auto" },
      level: { type: "string", default: "low" },
    },
    "x-kubernetes-validations": [{ rule: "!has(self.size) || has(self.a) || has(self.b) || has(self.c)" }],
  },
};
const pickPath = (team: TestNamespace) => objectPath(pick, team.namespace, "pick");

async function createNamespaceWithPick(spec: object): Promise<TestNamespace> {
  const team = await createNamespace();
  await team.grant([mayWrite(pick)], { role: "pick" });
  await installKind(team.api, pick);
  await createObject(team.api, pick, "pick", spec, team.namespace);
  await team.secret("bucket", { accessKeyID: secretText("access") });
  const fields = ["a", "b", "c", "mode", "level"].map((name) => ({ path: `spec.${name}`, ...accessKeyFrom }));
  const target = { apiVersion: apiVersionOf(pick), kind: pick.kind, name: "pick", fields };
  await team.bind("pick", {
    sources: [{ secret: { name: "bucket" } }],
    targets: [{ ...target, onRelease: "Remove", onConflict: "Force" }],
  });
  await team.until("pick", "Synced");
  return team;
}

describe("a deleted binding with onRelease: Retain", () => {
  it("keeps the value, gives up its ownership, reports that, and is gone", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    assert.deepEqual(await finalizersOf(team, "harbor-s3"), [FINALIZER]);
    await team.unbind("harbor-s3");
    assert.equal(fieldsOf(await team.api.get(team.harborPath()), team.manager("harbor-s3")), undefined);
    assert.equal((await team.s3()).accesskey, accessKey);
    await untilEvent(team, "harbor-s3", "Retained", /spec\.storage\.spec\.s3\.accesskey/);
  });

  it("causes no conflict: another manager applies another value without force", async () => {
    const team = await createNamespace();
    await team.boundHarbor();
    await assert.rejects(team.applyS3({ accesskey: "theirs" }, "platform"), /conflict/);
    await team.unbind("harbor-s3");
    await team.applyS3({ accesskey: "theirs" }, "platform");
    const requests = await team.requestsDuring(async () => {});
    assert.deepEqual(
      requests.filter(({ verb }) => verb === "patch"),
      [],
    );
    assert.equal((await team.s3()).accesskey, "theirs");
  });
});

describe("a deleted binding with onRelease: Remove", () => {
  const remove = { onRelease: "Remove" };

  it("removes its fields, and keeps all fields of others", async () => {
    const team = await createNamespace();
    await team.boundHarbor(remove);
    assert.deepEqual(await finalizersOf(team, "harbor-s3"), [FINALIZER]);
    await team.editS3({ rootdirectory: "/harbor" });
    await team.unbind("harbor-s3");
    const { accesskey, rootdirectory, bucket } = await team.s3();
    assert.deepEqual(
      { accesskey, rootdirectory, bucket },
      { accesskey: undefined, rootdirectory: "/harbor", bucket: "harbor" },
    );
    const harbor = await team.api.get(team.harborPath());
    assert.equal(fieldsOf(harbor, team.manager("harbor-s3")), undefined);
    await untilEvent(team, "harbor-s3", "Removed", /spec\.storage\.spec\.s3\.accesskey/);
  });

  for (const paths of [["spec.free.a.b"], ["spec.free.a.b", "spec.free.a.c"]]) {
    it(`removes its field manager from an object without a schema that stays: ${paths.join(" and ")}`, async () => {
      const team = await createNamespaceWithNest({ free: { a: { other: "theirs" } } });
      await team.rebind("nest", nestSpec(...paths));
      await team.until("nest", "Synced");
      await team.unbind("nest");
      const object = await team.api.get(objectPath(nest, team.namespace, "nest"));
      assert.deepEqual(object.spec, { free: { a: { other: "theirs" } } });
      assert.equal(fieldsOf(object, team.manager("nest")), undefined);
    });
  }

  it("removes the parent objects that it created and that are empty now", async () => {
    const team = await createNamespaceWithNest({});
    assert.ok((await nestIn(team)).a.b.c);
    await team.unbind("nest");
    assert.deepEqual(await nestIn(team), {});
  });

  it("removes them although an earlier binding created them and retained its value", async () => {
    const team = await createNamespaceWithNest({});
    const [target] = nestSpec("spec.a.b.c").targets;
    await team.rebind("nest", { targets: [{ ...target, onRelease: "Retain" }] });
    await team.until("nest", "Synced");
    await team.unbind("nest");
    await eventually(async () =>
      assert.equal(
        fieldsOf(await team.api.get(objectPath(nest, team.namespace, "nest")), team.manager("nest")),
        undefined,
      ),
    );
    await team.bind("later", nestSpec("spec.a.b.c"));
    await team.until("later", "Synced");
    await team.unbind("later");
    assert.deepEqual(await nestIn(team), {});
  });

  it("removes them with the last value of several bindings", async () => {
    const team = await createNamespaceWithNest({});
    await team.bind("second", nestSpec("spec.a.b.d"));
    await team.until("second", "Synced");
    await team.unbind("nest");
    assert.deepEqual(Object.keys((await nestIn(team)).a.b), ["d"]);
    await team.unbind("second");
    assert.deepEqual(await nestIn(team), {});
  });

  it("removes objects of others that it created again after they were removed", async () => {
    const team = await createNamespaceWithNest({ a: { b: {} } });
    await team.api.merge(objectPath(nest, team.namespace, "nest"), { spec: { a: null } });
    await eventually(async () => assert.ok((await nestIn(team)).a?.b?.c));
    await team.unbind("nest");
    assert.deepEqual(await nestIn(team), {});
  });

  it("removes them although another client has removed the value, while no controller ran", async () => {
    const team = await createNamespaceWithNest({});
    await team.controller.stop();
    await team.api.merge(objectPath(nest, team.namespace, "nest"), { spec: { a: { b: { c: null } } } });
    assert.deepEqual(await nestIn(team), { a: { b: {} } });
    await team.api.delete(team.bindingPath("nest"));
    await team.controller.start();
    await team.untilGone(team.bindingPath("nest"), RESTARTED_WITHIN_MS);
    assert.deepEqual(await nestIn(team), {});
  });

  it("keeps an empty object that existed before", async () => {
    const team = await createNamespaceWithNest({ a: {} });
    await team.unbind("nest");
    assert.deepEqual(await nestIn(team), { a: {} });
  });

  it("keeps an object that it created and to which others added fields", async () => {
    const team = await createNamespaceWithNest({});
    await team.api.merge(objectPath(nest, team.namespace, "nest"), { spec: { a: { other: "theirs" } } });
    await team.unbind("nest");
    assert.deepEqual(await nestIn(team), { a: { other: "theirs" } });
  });

  it("removes an annotation, and the annotations object if there was none before", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.harbor();
    const fields = [{ path: 'metadata.annotations["example.com/key"]', ...accessKeyFrom }];
    const target = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name: "harbor", fields, ...remove };
    await team.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], targets: [target] });
    await team.until("harbor-s3", "Synced");
    await team.unbind("harbor-s3");
    assert.equal((await team.api.get(team.harborPath())).metadata.annotations, undefined);
  });

  it("keeps a value that another manager owns too, and gives up its own ownership", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor(remove);
    await team.applyS3({ accesskey: accessKey }, "platform");
    await team.unbind("harbor-s3");
    assert.equal((await team.s3()).accesskey, accessKey);
    const harbor = await team.api.get(team.harborPath());
    assert.equal(fieldsOf(harbor, team.manager("harbor-s3")), undefined);
    assert.deepEqual(fieldsOf(harbor, "platform"), s3Fields("accesskey"));
  });

  it("keeps a value without which the target is invalid, reports that, and is gone", async () => {
    const team = await createNamespace();
    const bucket = secretText("bucket");
    await team.secret("bucket", { bucket });
    await team.harbor();
    await team.bind("harbor-s3", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [
        harborTarget({ bucket: { from: { source: "bucket", key: "bucket" } } }, { ...remove, onConflict: "Force" }),
      ],
    });
    await team.until("harbor-s3", "Synced");
    await team.unbind("harbor-s3");
    assert.equal((await team.s3()).bucket, bucket);
    await untilEvent(team, "harbor-s3", "ReleaseBlocked", /spec\.storage\.spec\.s3\.bucket/);
    assert.equal(fieldsOf(await team.api.get(team.harborPath()), team.manager("harbor-s3")), undefined);
  });

  it("keeps a value that a rule of the target requires and its schema does not show", async () => {
    const strict: Kind = {
      group: "release.example.com",
      kind: "Strict",
      plural: "stricts",
      spec: {
        type: "object",
        properties: { token: { type: "string" }, size: { type: "string" } },
        "x-kubernetes-validations": [{ rule: "!has(self.size) || has(self.token)", message: "token goes with size" }],
      },
    };
    const team = await createNamespace();
    await team.grant([mayWrite(strict)], { role: "strict" });
    await installKind(team.api, strict);
    await createObject(team.api, strict, "strict", {}, team.namespace);
    const token = secretText("token");
    await team.secret("bucket", { accessKeyID: token });
    const fields = [{ path: "spec.token", ...accessKeyFrom }];
    await team.bind("strict", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: apiVersionOf(strict), kind: "Strict", name: "strict", fields, ...remove }],
    });
    await team.until("strict", "Synced");
    const path = objectPath(strict, team.namespace, "strict");
    await team.api.merge(path, { spec: { size: "large" } });
    await team.unbind("strict");
    assert.equal((await team.api.get(path)).spec.token, token);
    await untilEvent(team, "strict", "ReleaseBlocked", /spec\.token/);
  });

  it("removes as much as it can where a rule requires one of several values, and reports the outcome of each", async () => {
    const team = await createNamespaceWithPick({ name: "pick" });
    await team.api.merge(pickPath(team), { spec: { size: "large" } });
    await team.unbind("pick");
    const left = await team.api.get(pickPath(team));
    assert.deepEqual(Object.keys(left.spec), ["c", "level", "mode", "name", "size"]);
    assert.equal(fieldsOf(left, team.manager("pick")), undefined);
    await untilEvent(team, "pick", "Removed", /spec\.a, spec\.b, spec\.mode, spec\.level of/);
    await untilEvent(team, "pick", "ReleaseBlocked", /spec\.c of/);
  });

  it("keeps no ownership where a default of the schema replaces its value", async () => {
    const team = await createNamespaceWithPick({ name: "pick" });
    await team.unbind("pick");
    const left = await team.api.get(pickPath(team));
    assert.deepEqual(left.spec, { level: "low", mode: "auto", name: "pick" });
    const managers = left.metadata.managedFields.map(({ manager }: AnyObject) => manager);
    assert.deepEqual(
      managers.filter((manager: string) => manager.startsWith("inlay")),
      [],
    );
    await untilEvent(team, "pick", "Removed", /spec\.level/);
  });

  it("is gone when its target is already deleted", async () => {
    const team = await createNamespace();
    await team.boundHarbor(remove);
    await team.api.delete(team.harborPath());
    await team.until("harbor-s3", "TargetNotFound");
    await team.unbind("harbor-s3");
  });

  it("is gone when it never wrote anything", async () => {
    const team = await createNamespace();
    await team.bind("harbor-s3", accessKeySpec(remove));
    await team.until("harbor-s3", "SourceNotFound");
    await team.unbind("harbor-s3");
  });

  it("is gone with the CRD of its target", async () => {
    const fleeting: Kind = { ...nest, kind: "Fleeting", plural: "fleetings" };
    const team = await createNamespace();
    await team.grant([mayWrite(fleeting)], { role: "fleeting" });
    await installKind(team.api, fleeting);
    await createObject(team.api, fleeting, "fleeting", {}, team.namespace);
    await team.secret("bucket", { accessKeyID: secretText("access") });
    const fields = [{ path: "spec.a.other", ...accessKeyFrom }];
    await team.bind("fleeting", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [{ apiVersion: apiVersionOf(fleeting), kind: "Fleeting", name: "fleeting", fields, ...remove }],
    });
    await team.until("fleeting", "Synced");
    await removeKind(team.api, fleeting);
    await team.unbind("fleeting");
  });

  it("waits until an invalid edit is fixed before it removes anything", async () => {
    const team = await createNamespace();
    await team.boundHarbor(remove);
    const before = (await team.s3()).accesskey;
    const [target] = (await team.binding("harbor-s3")).spec.targets;
    const fields = [{ ...target.fields[0] }];
    const mistakes = { "spec.storage.spec.s3.acesskey": "UnknownField", "spec..storage": "InvalidPath" };
    for (const [path, reason] of Object.entries(mistakes)) {
      fields[0].path = path;
      await team.api.merge(team.bindingPath("harbor-s3"), { spec: { targets: [{ ...target, fields }] } });
      await team.until("harbor-s3", reason);
      assert.equal((await team.s3()).accesskey, before);
    }
    fields[0].path = "spec.storage.spec.s3.regionendpoint";
    await team.api.merge(team.bindingPath("harbor-s3"), { spec: { targets: [{ ...target, fields }] } });
    await team.until("harbor-s3", "Synced");
    const { accesskey, regionendpoint } = await team.s3();
    assert.deepEqual([accesskey, regionendpoint], [undefined, before]);
  });

  it("does not delay the deletion of its namespace, and releases a target in another namespace then too", async () => {
    const [alone, team, other] = [
      await createNamespace(),
      await createNamespace(),
      await createNamespace({ account: false }),
    ];
    await alone.boundHarbor(remove);
    await team.grant(
      [{ apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] }],
      { namespace: other.namespace, role: "guest" },
    );
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await other.harbor();
    await team.bind("harbor-s3", accessKeySpec({ namespace: other.namespace, ...remove }));
    await team.until("harbor-s3", "Synced");
    // At the same time, because the deletion of a namespace takes seconds.
    const namespaces = [alone, team].map(({ namespace }) => `/api/v1/namespaces/${namespace}`);
    for (const namespace of namespaces) await team.api.delete(namespace);
    for (const namespace of namespaces) await team.untilGone(namespace, 30_000);
    assert.equal((await other.s3()).accesskey, undefined);
  });

  it("keeps a value that another user overwrote, and a recreated object, while no controller ran", async () => {
    const [taken, recreated] = [await createNamespace(), await createNamespace()];
    await taken.boundHarbor(remove);
    await recreated.boundHarbor(remove);
    await taken.controller.stop();
    await taken.applyS3({ accesskey: "theirs" }, "platform", true);
    await recreated.api.delete(recreated.harborPath());
    await recreated.harbor("harbor", { accesskey: "new" });
    const { metadata } = await recreated.api.get(recreated.harborPath());
    for (const team of [taken, recreated]) await team.api.delete(team.bindingPath("harbor-s3"));
    await taken.controller.start();
    for (const team of [taken, recreated]) await team.untilGone(team.bindingPath("harbor-s3"), RESTARTED_WITHIN_MS);
    assert.equal((await taken.s3()).accesskey, "theirs");
    assert.equal((await recreated.api.get(recreated.harborPath())).metadata.resourceVersion, metadata.resourceVersion);
  });

  it("is released when its account regains its permissions in time", async () => {
    const team = await createNamespace();
    await team.boundHarbor(remove);
    await team.revoke();
    const mark = await auditLog().mark();
    await team.api.delete(team.bindingPath("harbor-s3"));
    await eventually(async () => {
      const refused = (await auditLog().since(mark)).some(
        ({ namespace, verb, code }) => namespace === team.namespace && verb === "get" && code === 403,
      );
      assert.ok(refused);
    });
    await team.grant(
      [{ apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] }],
      { role: "again" },
    );
    await team.untilGone(team.bindingPath("harbor-s3"));
    assert.equal((await team.s3()).accesskey, undefined);
  });
});
