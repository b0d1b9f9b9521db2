/** Shows that Inlay abandons the release of a deleted binding that can't be finished after a minute. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { inlayJson } from "../controller/cli.ts";
import {
  ACCESS_KEY_BASE,
  bindCompositionsIn,
  compose,
  composedNames,
  compositionPath,
  installCompositions,
  removeCompositions,
  TO_CLAIM,
  unbindCompositionsIn,
  untilComposition,
} from "../controller/compositions.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { heapRules, heaps, makeDeep } from "../controller/deep.ts";
import { eventually } from "../controller/eventually.ts";
import { FAST, FastController } from "../controller/fast.ts";
import { apiVersionOf, createObject, installKind } from "../controller/kinds.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { paste } from "../controller/paste.ts";
import { untilEvent } from "../controller/released.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const remove = { onRelease: "Remove" };

describe("a deleted binding with onRelease: Remove that can't be released", () => {
  let controller: ControllerProcess;

  before(async () => {
    await stopSharedController();
    controller = new FastController(controlPlane());
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  const boundTeam = async () => {
    const team = await createNamespace({ controller: false });
    return { team, accessKey: await team.boundHarbor(remove) };
  };

  /** Deletes the binding, and waits until it is gone: after a minute of the controller's clock, and no earlier. */
  async function deleted(team: TestNamespace): Promise<void> {
    await team.api.delete(team.bindingPath("harbor-s3"));
    const { deletionTimestamp } = (await team.binding("harbor-s3")).metadata;
    await team.untilGone(team.bindingPath("harbor-s3"), 30_000);
    assert.ok((Date.now() - Date.parse(deletionTimestamp)) * FAST >= 59_000);
  }

  it("because its account was deleted is gone after a minute, and nothing is requested as the account", async () => {
    const { team } = await boundTeam();
    await team.api.delete(`${team.path("v1", "serviceaccounts")}/inlay`);
    await team.until("harbor-s3", "ServiceAccountNotFound");
    const mark = await auditLog().mark();
    await deleted(team);
    const asAccount = (await auditLog().since(mark)).filter(({ as, namespace }) => as && namespace === team.namespace);
    assert.deepEqual(
      asAccount.filter(({ verb }) => verb === "patch" || verb === "get"),
      [],
    );
    await untilEvent(team, "harbor-s3", "ReleaseAbandoned", /abandoned after 60 s/);
  });

  it("because its account may no longer write is gone after a minute, keeps the value and reports it", async () => {
    const { team, accessKey } = await boundTeam();
    await team.revoke();
    await team.api.delete(team.bindingPath("harbor-s3"));
    await team.until("harbor-s3", "Forbidden");
    await deleted(team);
    assert.equal((await team.s3()).accesskey, accessKey);
    await untilEvent(team, "harbor-s3", "ReleaseAbandoned", /harborclusters/);
    // The binding is gone, so the target says what is left, and how to remove it.
    await untilEvent(
      team,
      "harbor",
      "ReleaseAbandoned",
      /spec\.storage\.spec\.s3\.accesskey of this object \(Forbidden\)/,
    );
    const { note = "" } = (await team.events("harbor")).find(({ reason }) => reason === "ReleaseAbandoned") ?? {};
    const [, object = ""] = /with: npx inlay explain (\S+) -n team-\d+$/.exec(note) ?? [];
    const explain = () => inlayJson(controlPlane().kubeconfigFile, "explain", object, "-n", team.namespace);
    const { json, text } = await explain();
    const [left] = json.bindings;
    assert.deepEqual([left.fieldManager, left.state], [team.manager("harbor-s3"), "NotFound"]);
    assert.deepEqual(left.paths, ["spec.storage.spec.s3.accesskey"]);
    assert.ok(text.includes(left.leftOver.command), text);
    await paste(left.leftOver.command);
    assert.equal((await team.s3()).accesskey, undefined);
    assert.deepEqual((await explain()).json.bindings, []);
  });

  it("for any other reason is gone after a minute: a target that is too deep to read, a record that can't be parsed", async () => {
    const [{ team: broken }, deep] = [
      await boundTeam(),
      await createNamespace({ controller: false, rules: heapRules }),
    ];
    await installKind(deep.api, heaps);
    await createObject(deep.api, heaps, "heap", {}, deep.namespace);
    await deep.secret("bucket", { accessKeyID: secretText("access") });
    const fields = [{ path: "spec.text", from: { source: "bucket", key: "accessKeyID" } }];
    const target = { apiVersion: apiVersionOf(heaps), kind: heaps.kind, name: "heap", fields, ...remove };
    await deep.bind("harbor-s3", { sources: [{ secret: { name: "bucket" } }], targets: [target] });
    await deep.until("harbor-s3", "Synced");
    await makeDeep(deep.api, deep.namespace, "heap");
    await controller.stop();
    const path = { op: "replace", path: "/status/targets/0/paths/0", value: "spec[" };
    await broken.api.jsonPatch(`${broken.bindingPath("harbor-s3")}/status`, [path]);
    for (const team of [broken, deep]) await team.api.delete(team.bindingPath("harbor-s3"));
    await controller.start();
    for (const team of [deep, broken]) await team.untilGone(team.bindingPath("harbor-s3"));
    await untilEvent(broken, "harbor-s3", "ReleaseAbandoned", /values may remain/);
    await untilEvent(deep, "harbor-s3", "ReleaseAbandoned", /Heap .* levels/);
  });

  it("is gone a minute after its deletion, also if no controller runs in the meantime", async () => {
    const { team } = await boundTeam();
    await team.revoke();
    const path = team.bindingPath("harbor-s3");
    await team.api.delete(path);
    const isGone = async () => (await team.api.find(path)) === undefined;
    const hasTried = async () =>
      (await controller.metric("workqueue_retries_total", 'controller="secretbinding"')) >= 2;
    for (let replicas = 0; !(await isGone()); replicas++) {
      assert.ok(replicas < 5, "each replica restarts the minute");
      await controller.stop("SIGKILL");
      await controller.start();
      await eventually(async () => assert.ok((await isGone()) || (await hasTried())));
    }
    await untilEvent(team, "harbor-s3", "ReleaseAbandoned", /harborclusters/);
  });
});

describe("a deleted composition whose account can't delete its bindings", () => {
  let controller: ControllerProcess;

  before(async () => {
    await installCompositions();
    controller = new FastController(controlPlane());
    await controller.start();
  });
  after(async () => {
    await removeCompositions();
    await controller.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  async function composedTeam(): Promise<TestNamespace> {
    const team = await createNamespace({ controller: false });
    await team.secret("bucket", { accessKeyID: secretText("access") });
    await team.harbor();
    await bindCompositionsIn(team);
    await compose(team, "harbor", { bindings: [{ name: "s3", base: ACCESS_KEY_BASE, patches: [TO_CLAIM] }] });
    await untilComposition(team, "harbor", "Ready");
    return team;
  }

  it("is gone after a minute, and its bindings stay as with Orphan", async () => {
    const team = await composedTeam();
    await unbindCompositionsIn(team);
    const path = compositionPath(team, "harbor");
    await team.api.delete(path);
    const { status } = await untilComposition(team, "harbor", "Forbidden");
    assert.match(status.conditions[0].message, /inlay-compositions may not delete secretbindings/);
    await team.untilGone(path);
    await team.until("harbor-s3", "Synced");
    assert.deepEqual(await composedNames(team), ["harbor-s3"]);
    const { items } = await team.api.get("/apis/events.k8s.io/v1/events?fieldSelector=reason=ReleaseAbandoned");
    const notes: string[] = items.map(({ note }: { note: string }) => note);
    const command = `kubectl delete secretbindings -A -l inlay.dev/composition=${team.namespace}-harbor`;
    assert.ok(
      notes.some((note) => note.includes(`${team.namespace}/harbor-s3; delete them with: ${command}`)),
      notes.join(),
    );
  });

  it("says that it waits, not that it is ready, while a binding can't be released", async () => {
    const team = await composedTeam();
    await team.revoke();
    const path = compositionPath(team, "harbor");
    const { metadata } = await team.api.get(path);
    await team.api.merge(path, { metadata: { finalizers: [...metadata.finalizers, "example.com/other"] } });
    await team.api.delete(path);
    const says = (message: RegExp) =>
      eventually(async () => {
        const { status } = await untilComposition(team, "harbor", "Reconciling");
        assert.match(status.conditions[1].message, message);
      });
    await says(/being deleted, and waits for the deletion of its 1 bindings/);
    await says(/being deleted, and a finalizer of another client keeps it/);
    await team.api.merge(path, { metadata: { finalizers: null } });
    await team.untilGone(path);
    assert.deepEqual(await composedNames(team), []);
  });
});
