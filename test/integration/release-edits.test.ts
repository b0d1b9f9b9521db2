/** Shows how fields are released when the binding no longer names them, or is recreated. */
import assert from "node:assert/strict";
import { untilMayNot } from "../controller/access.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { lineOfPage, paste } from "../controller/paste.ts";
import {
  accessKeyFrom,
  createNamespaceWithNest,
  FINALIZER,
  finalizersOf,
  nestIn,
  nestSpec,
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
  usualRules,
} from "../controller/test-namespace.ts";

const endpoint = { regionendpoint: { template: "https://s3.test" } };

describe("a field that a binding no longer names", () => {
  const both = { accesskey: accessKeyFrom, ...endpoint };

  async function createNamespaceWithBoth(more: object = {}): Promise<{ team: TestNamespace; accessKey: string }> {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    await team.harbor();
    await team.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], targets: [harborTarget(both, more)] });
    await team.until("harbor-s3", "Synced");
    return { team, accessKey };
  }

  it("keeps its value without an owner, while the binding keeps the other fields", async () => {
    const { team, accessKey } = await createNamespaceWithBoth();
    await team.rebind("harbor-s3", { targets: [harborTarget(endpoint)] });
    const { status } = await team.until("harbor-s3", "Synced");
    assert.deepEqual(status.targets[0].paths, ["spec.storage.spec.s3.regionendpoint"]);
    assert.equal((await team.s3()).accesskey, accessKey);
    const harbor = await team.api.get(team.harborPath());
    assert.deepEqual(fieldsOf(harbor, team.manager("harbor-s3")), s3Fields("regionendpoint"));
    await team.applyS3({ accesskey: "theirs" }, "platform");
  });

  it("is removed with onRelease: Remove, while the other fields stay", async () => {
    const { team } = await createNamespaceWithBoth({ onRelease: "Remove" });
    await team.rebind("harbor-s3", { targets: [harborTarget(endpoint, { onRelease: "Remove" })] });
    await team.until("harbor-s3", "Synced");
    const { accesskey, regionendpoint } = await team.s3();
    assert.deepEqual([accesskey, regionendpoint], [undefined, "https://s3.test"]);
  });

  it("is removed where its path changed, and the field of the new path is written", async () => {
    const { team, accessKey } = await createNamespaceWithBoth({ onRelease: "Remove" });
    const fields = { rootdirectory: accessKeyFrom, ...endpoint };
    await team.rebind("harbor-s3", { targets: [harborTarget(fields, { onRelease: "Remove" })] });
    await team.until("harbor-s3", "Synced");
    const { accesskey, rootdirectory, regionendpoint } = await team.s3();
    assert.deepEqual([accesskey, rootdirectory, regionendpoint], [undefined, accessKey, "https://s3.test"]);
  });

  it("is released with its whole target, whether the policy there is Retain or Remove", async () => {
    const team = await createNamespace();
    const accessKey = secretText("access");
    await team.secret("bucket", { accessKeyID: accessKey });
    for (const name of ["stays", "retains", "removes"]) await team.harbor(name);
    const target = (name: string, more = {}) => harborTarget({ accesskey: accessKeyFrom }, { name, ...more });
    const targets = [target("stays"), target("retains"), target("removes", { onRelease: "Remove" })];
    await team.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], targets });
    await team.until("harbor-s3", "Synced");
    assert.deepEqual(await finalizersOf(team, "harbor-s3"), [FINALIZER]);
    await team.rebind("harbor-s3", { targets: [target("stays")] });
    const { status } = await team.until("harbor-s3", "Synced");
    assert.equal(status.synced, "1/1");
    assert.equal(status.targets.length, 1);
    assert.equal((await team.s3("stays")).accesskey, accessKey);
    assert.equal((await team.s3("retains")).accesskey, accessKey);
    assert.equal((await team.s3("removes")).accesskey, undefined);
    assert.equal(fieldsOf(await team.api.get(team.harborPath("retains")), team.manager("harbor-s3")), undefined);
    assert.deepEqual(await finalizersOf(team, "harbor-s3"), [FINALIZER]);
    await team.rebind("harbor-s3", { targets: [target("missing")] });
    await eventually(async () => assert.deepEqual(await finalizersOf(team, "harbor-s3"), []));
  });

  it("is removed with an object that the binding created, and the binding recreates that object for another field", async () => {
    const team = await createNamespaceWithNest({});
    await team.rebind("nest", nestSpec("spec.a.b.d"));
    await team.until("nest", "Synced");
    assert.deepEqual(Object.keys((await nestIn(team)).a.b), ["d"]);
    await team.unbind("nest");
    assert.deepEqual(await nestIn(team), {});
  });
});

describe("onRelease", () => {
  it("has the value that it has when the binding is deleted", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor();
    for (const onRelease of ["Remove", "Retain"]) {
      await team.rebind("harbor-s3", accessKeySpec({ onRelease }));
      await team.until("harbor-s3", "Synced");
    }
    await team.unbind("harbor-s3");
    assert.equal(fieldsOf(await team.api.get(team.harborPath()), team.manager("harbor-s3")), undefined);
    assert.equal((await team.s3()).accesskey, accessKey);
  });

  it("has the value that it was changed to while the controller was down, for a binding that was deleted then", async () => {
    const [removed, retained] = [await createNamespace(), await createNamespace()];
    await removed.boundHarbor();
    const accessKey = await retained.boundHarbor({ onRelease: "Remove" });
    const { controller } = removed;
    await controller.stop();
    for (const [team, onRelease] of [
      [removed, "Remove"],
      [retained, "Retain"],
    ] as const) {
      await team.rebind("harbor-s3", accessKeySpec({ onRelease }));
      await team.api.delete(team.bindingPath("harbor-s3"));
    }
    await controller.start();
    for (const team of [removed, retained]) {
      await team.untilGone(team.bindingPath("harbor-s3"), RESTARTED_WITHIN_MS);
      assert.equal(fieldsOf(await team.api.get(team.harborPath()), team.manager("harbor-s3")), undefined);
    }
    assert.equal((await removed.s3()).accesskey, undefined);
    assert.equal((await retained.s3()).accesskey, accessKey);
  });

  it("has no effect where you remove the finalizer by the documented command because no controller runs", async () => {
    const team = await createNamespace();
    const accessKey = await team.boundHarbor({ onRelease: "Remove" });
    await team.controller.stop();
    await team.api.delete(team.bindingPath("harbor-s3"));
    assert.ok(await team.api.find(team.bindingPath("harbor-s3")));
    await paste(
      await lineOfPage(
        "tasks/uninstall.md",
        "kubectl get secretbindings -A -o custom-columns=:metadata.namespace,:metadata.name --no-headers",
      ),
    );
    await team.untilGone(team.bindingPath("harbor-s3"));
    await team.controller.start();
    await team.barrier();
    assert.equal((await team.s3()).accesskey, accessKey);
  });

  it("of all targets can be set once in defaults", async () => {
    const team = await createNamespace();
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.harbor();
    await team.bind("harbor-s3", { ...accessKeySpec(), defaults: { onRelease: "Remove" } });
    await team.until("harbor-s3", "Synced");
    await team.unbind("harbor-s3");
    assert.equal((await team.s3()).accesskey, undefined);
  });

  it("does not change the finalizers of others", async () => {
    const team = await createNamespace();
    await team.boundHarbor({ onRelease: "Remove" });
    const theirs = "example.com/mine";
    await team.api.merge(team.bindingPath("harbor-s3"), { metadata: { finalizers: [FINALIZER, theirs] } });
    await team.api.delete(team.bindingPath("harbor-s3"));
    await eventually(async () => assert.deepEqual(await finalizersOf(team, "harbor-s3"), [theirs]));
    assert.equal((await team.s3()).accesskey, undefined);
    await team.api.merge(team.bindingPath("harbor-s3"), { metadata: { finalizers: [] } });
    await team.untilGone(team.bindingPath("harbor-s3"));
  });
});

describe("a binding that is recreated under the same name", () => {
  it("retains fields that the former binding wrote and that it does not name, with or without a running controller", async () => {
    const [watched, unwatched] = [await createNamespace(), await createNamespace()];
    const secrets = [watched, unwatched].map(() => secretText("access"));
    const spec = (fields: Record<string, object>) => ({
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget(fields)],
    });
    for (const [index, team] of [watched, unwatched].entries()) {
      await team.secret("bucket", { accessKeyID: secrets[index] as string });
      await team.harbor();
      await team.bind("harbor-s3", spec({ accesskey: accessKeyFrom, ...endpoint }));
      await team.until("harbor-s3", "Synced");
    }
    await watched.unbind("harbor-s3");
    await watched.bind("harbor-s3", spec(endpoint));
    await watched.until("harbor-s3", "Synced");
    await unwatched.controller.stop();
    await unwatched.unbindByForce("harbor-s3");
    await unwatched.bind("harbor-s3", spec({ rootdirectory: { template: "/x" } }));
    await unwatched.controller.start();
    await unwatched.until("harbor-s3", "Synced", RESTARTED_WITHIN_MS);
    for (const [index, team] of [watched, unwatched].entries()) {
      const { accesskey, regionendpoint } = await team.s3();
      assert.deepEqual([accesskey, regionendpoint], [secrets[index], "https://s3.test"]);
    }
  });

  it("is not affected by the release of the former binding that can't be finished", async () => {
    const [team, other] = [await createNamespace(), await createNamespace()];
    await team.grant(usualRules, { namespace: other.namespace, role: "visitor" });
    const value = secretText("access");
    await team.secret("bucket", { accessKeyID: value });
    for (const each of [team, other]) await each.harbor();
    const spec = {
      sources: [{ secret: { name: "bucket" } }],
      targets: [undefined, other.namespace].map((namespace) =>
        harborTarget({ accesskey: accessKeyFrom }, { ...(namespace && { namespace }) }),
      ),
    };
    await team.bind("harbor-s3", spec);
    await team.until("harbor-s3", "Synced");
    const visitor = `/apis/rbac.authorization.k8s.io/v1/namespaces/${other.namespace}/rolebindings/visitor`;
    await team.api.delete(visitor);
    await untilMayNot(`system:serviceaccount:${team.namespace}:inlay`, {
      verb: "patch",
      group: "goharbor.io",
      resource: "harborclusters",
      namespace: other.namespace,
    });
    const mark = await auditLog().mark();
    await team.unbindByForce("harbor-s3");
    await team.bind("harbor-s3", spec);
    await team.until("harbor-s3", "Forbidden");
    const refusals = async () =>
      (await auditLog().since(mark)).filter(({ namespace, code }) => namespace === other.namespace && code === 403);
    const before = (await refusals()).length;
    // Both the release and the new binding retry.
    await eventually(async () => assert.ok((await refusals()).length >= before + 6), 20_000);
    const patches = (await auditLog().since(mark)).filter(
      ({ namespace, verb, name }) => namespace === team.namespace && verb === "patch" && name === "harbor",
    );
    // One write removes the field manager of the former binding, and the other adds that of the new one.
    assert.equal(patches.length, 2);
    assert.equal((await team.s3()).accesskey, value);
    await team.api.create(visitor.slice(0, visitor.lastIndexOf("/")), {
      metadata: { name: "visitor" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "visitor" },
      subjects: [{ kind: "ServiceAccount", name: "inlay", namespace: team.namespace }],
    });
    await team.until("harbor-s3", "Synced");
    assert.equal((await other.s3()).accesskey, value);
  });
});
