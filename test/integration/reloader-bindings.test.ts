/**
 * Shows the bindings that Inlay generates from Reloader's annotations, and what happens when users change, delete or prevent
 * them.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { AUTO, annotated, named, newShop, warningsOn } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import { inlayJson } from "../controller/cli.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { refuse } from "../controller/refusing.ts";
import { installReloader, madeIn, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { auditLog } from "../controller/shared.ts";

const LATER = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/addedLater";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

describe("with Reloader's annotations enabled", function () {
  this.timeout("3m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    controller = await reloading({ namespaces: ["team-*"] });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("each annotated workload has a binding, which kubectl shows, and which is deleted with the annotation or the workload", async () => {
    const shop = await newShop();
    const { team } = shop;
    const jobs = annotated("jobs", AUTO);
    jobs.spec.replicas = 2;
    await shop.make(annotated("core", AUTO), jobs);
    const [core] = await untilMade(team, named("core", "jobs"));
    const { uid } = (await team.api.get(shop.path("core"))).metadata;
    assert.deepEqual(core?.metadata.ownerReferences, [
      { apiVersion: "apps/v1", kind: "Deployment", name: "core", uid },
    ]);
    assert.deepEqual(core?.spec.sources, [
      { name: "secret-one", optional: true, secret: { name: "one" } },
      { name: "configmap-config", optional: true, configMap: { name: "config" } },
    ]);
    await team.api.merge(shop.path("core"), { metadata: { annotations: { "reloader.stakater.com/auto": null } } });
    await untilMade(team, named("jobs"));
    await shop.restartedBy(() => shop.rotate("one"), ["jobs"], named("jobs"));
    await eventually(async () => {
      const reasons = (await team.events("jobs")).map(({ reason }) => reason);
      assert.ok(reasons.includes("Restarted") && reasons.includes("NoPodDisruptionBudget"), reasons.join());
    });
    await team.api.delete(shop.path("jobs"));
    await untilMade(team, []);
  });

  it("the deletion of workloads is no error of a reconcile", async () => {
    const shop = await newShop();
    const names = Array.from({ length: 12 }, (_, at) => `core-${at}`);
    await shop.make(...names.map((name) => annotated(name, AUTO, { spec: { terminationGracePeriodSeconds: 0 } })));
    await untilMade(shop.team, named(...names));
    const mark = controller.output.length;
    // The garbage collector deletes a binding before or after Inlay writes its last status. Here, others are as fast.
    await Promise.all(
      names.map(async (name) => {
        await shop.team.api.delete(shop.path(name));
        await shop.team.api.remove(shop.team.bindingPath(named(name)[0] ?? ""));
      }),
    );
    await untilMade(shop.team, []);
    await shop.barrier();
    assert.doesNotMatch(controller.output.slice(mark), /reconcile failed/);
  });

  it("a changed binding is reverted, and a deleted one is recreated", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.rotate("beside");
    await shop.make(annotated("core", AUTO));
    const [name = ""] = named("core");
    const [before] = await untilMade(team, [name]);
    const path = team.bindingPath(name);
    const edits = [
      { spec: { sources: [{ secret: { name: "beside" } }] } },
      { spec: { suspend: true } },
      { metadata: { labels: { "inlay.dev/generated-for": null }, ownerReferences: null } },
    ];
    for (const edit of edits) {
      await team.api.merge(path, edit);
      await eventually(async () => {
        const now = await team.api.get(path);
        assert.deepEqual(now.spec, before?.spec);
        assert.deepEqual(now.metadata.labels, before?.metadata.labels);
        assert.deepEqual(now.metadata.ownerReferences, before?.metadata.ownerReferences);
      });
    }
    await untilMade(team, [name]);
    await team.api.delete(path);
    await eventually(async () => assert.notEqual((await team.api.get(path)).metadata.uid, before?.metadata.uid));
    await untilMade(team, [name]);
    await shop.restartedBy(() => shop.rotate("one"), ["core"], [name]);
    // Other annotations may be added to it.
    await team.api.merge(path, { metadata: { annotations: { "example.com/note": "mine" } } });
    await shop.restartedBy(() => shop.rotate("one"), ["core"], [name]);
    assert.equal((await team.api.get(path)).metadata.annotations["example.com/note"], "mine");
  });

  it("inlay explain shows such a binding like any other, and its account", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO));
    await untilMade(team, named("core"));
    await shop.rotate("one");
    await shop.rolledOut("reloader-deployment-core", 1);
    const args = ["explain", "reloader-deployment-core", "--namespace", team.namespace];
    const { json, text } = await inlayJson(controlPlane().kubeconfigFile, ...args);
    assert.match(text, /ServiceAccount inlay-reloader .*Inlay's own namespace/);
    assert.deepEqual(
      json.sources.map(({ source }: AnyObject) => source),
      ["secret-one", "configmap-config"],
    );
    assert.equal(json.advice.command, undefined);
    const trace = ["trace", "one", "--namespace", team.namespace];
    const traced = await inlayJson(controlPlane().kubeconfigFile, ...trace);
    assert.match(traced.text, /reloader-deployment-core/);
  });

  it("a workload that holds its namespace back during the deletion has no binding, and that is no error", async () => {
    const [{ team }, other] = await Promise.all([newShop(), newShop()]);
    const held = annotated("held", AUTO);
    held.metadata.finalizers = ["example.com/hold"];
    await team.api.create(team.path("apps/v1", "deployments"), held);
    await untilMade(team, named("held"));
    const errors = () => controller.metric("controller_runtime_reconcile_errors_total", 'controller="reloader"');
    const [before, mark] = [await errors(), await auditLog().mark()];
    const namespace = `/api/v1/namespaces/${team.namespace}`;
    await team.api.delete(namespace);
    await eventually(async () => {
      const requests = await auditLog().since(mark);
      const isRefused = (each: (typeof requests)[number]) =>
        each.verb === "create" && each.resource === "inlay.dev/secretbindings" && each.namespace === team.namespace;
      assert.ok(requests.some(isRefused));
    });
    await untilMade(team, []);
    // A later change, which the same queue processes.
    await other.make(annotated("core", AUTO));
    await untilMade(other.team, named("core"));
    await team.api.merge(`${team.path("apps/v1", "deployments")}/held`, { metadata: { finalizers: null } });
    await team.untilGone(namespace);
    assert.equal(await errors(), before);
  });

  it("a user's binding of such a name is not changed, and a warning on the workload reports it", async () => {
    const shop = await newShop();
    const { team } = shop;
    const sources = [{ secret: { name: "one" } }];
    const own = await team.bind("reloader-deployment-core", {
      sources,
      rollout: { targets: [{ kind: "Deployment", name: "x" }] },
    });
    await shop.make(annotated("core", AUTO));
    await eventually(async () => assert.match((await warningsOn(team, "core")).join(), /reloader-deployment-core\b/));
    assert.deepEqual((await team.api.get(team.bindingPath("reloader-deployment-core"))).spec, own.spec);
    // Another user may take the name before the controller sees that it is free.
    await team.api.delete(team.bindingPath("reloader-deployment-core"));
    await untilMade(team, named("core"));
  });

  it("a binding that the API server refuses is reported on the workload, and does not keep outdated bindings", async () => {
    const shop = await newShop();
    const { team } = shop;
    await shop.make(annotated("core", AUTO), annotated("stays", AUTO));
    await untilMade(team, named("core", "stays"));
    const binding = { apiVersion: "inlay.dev/v1alpha1", kind: "SecretBinding", metadata: { name: "x-refused" } };
    const spec = { serviceAccountName: "inlay", sources: [{ secret: { name: "one" } }], rollout: { targets: [] } };
    const lift = await refuse(
      team,
      `refuses-${team.namespace}`,
      { operations: ["CREATE"], apiGroups: ["inlay.dev"], resources: ["secretbindings"] },
      `!object.metadata.name.endsWith("refused")`,
      () => team.api.create(`${team.path("inlay.dev/v1alpha1", "secretbindings")}?dryRun=All`, { ...binding, spec }),
    );
    await shop.make(annotated("refused", AUTO));
    const notes = async () =>
      (await team.events("refused")).filter(({ reason }) => reason === "BindingNotMade").map(({ note }) => note);
    await eventually(async () => assert.match((await notes()).join(), /reloader-deployment-refused\b/));
    await team.api.merge(shop.path("core"), { metadata: { annotations: { "reloader.stakater.com/auto": null } } });
    await untilMade(team, named("stays"));
    await shop.restartedBy(() => shop.rotate("one"), ["stays"], named("stays"));
    assert.equal((await notes()).length, 1);
    await lift();
    await untilMade(team, named("refused", "stays"), 60_000);
  });

  it("a CRD of another version with another default prevents no restart, and causes no endless writes", async () => {
    const shop = await newShop();
    const { team } = shop;
    const crd = `${CRDS}/secretbindings.inlay.dev`;
    const field = { type: "string", default: "new", description: "A field of another version." };
    await shop.make(annotated("core", AUTO));
    await untilMade(team, named("core"));
    await team.api.jsonPatch(crd, [{ op: "add", path: LATER, value: field }]);
    try {
      await eventually(async () => assert.equal((await madeIn(team))[0]?.spec.addedLater, "new"));
      await shop.make(annotated("next", AUTO));
      const made = named("core", "next");
      await untilMade(team, made);
      await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], made);
      await controller.stop();
      // Restarts each workload once more, after which nothing changes.
      await shop.restartedBy(() => controller.start(), [], made);
      await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], made);
      const from = await auditLog().mark();
      await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], made);
      const writes = (await auditLog().controllerWritesSince(from)).filter(
        ({ namespace, resource, verb }) =>
          namespace === team.namespace && resource === "inlay.dev/secretbindings" && verb === "update",
      );
      assert.deepEqual(writes, []);
    } finally {
      await team.api.jsonPatch(crd, [{ op: "remove", path: LATER }]);
    }
    await eventually(async () => assert.equal((await madeIn(team))[0]?.spec.addedLater, undefined));
    await shop.restartedBy(() => shop.rotate("one"), ["core", "next"], named("core", "next"));
  });
});
