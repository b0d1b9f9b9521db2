/** Shows that workloads restart by the versions that the Secrets Store CSI driver reports for a SecretProviderClass. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { newShop, warningsOn } from "../controller/annotated.ts";
import { CLASS_AUTO, mounting } from "../controller/annotated-classes.ts";
import { CLASS_GROUP, classVolume, installPodStatuses, newClass, report, unreport } from "../controller/classes.ts";
import { inlayJson } from "../controller/cli.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { installReloader, madeIn, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type Rule } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const mayFollow: Rule = {
  apiGroups: [CLASS_GROUP],
  resources: ["secretproviderclasspodstatuses"],
  verbs: ["list", "watch"],
};

describe("the versions of a SecretProviderClass", function () {
  this.timeout("3m");
  let controller: ControllerProcess;

  before(async () => {
    await installPodStatuses();
    await installReloader();
    controller = await reloading({ namespaces: ["team-*"], providerClasses: true });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
  });

  it("restart the workloads that mount it, once for each new version, while pods are created and deleted", async () => {
    const team = await createNamespace({ rules: [...rolloutRules, mayFollow], controller: false });
    const shop = new Workloads(team);
    await shop.deploy({ web: { pods: { volumes: [classVolume("store")] } }, idle: {} });
    await report(team, "web-1", "store", { password: "v1" });
    await report(team, "other-1", "elsewhere", { password: "v1" });
    await team.bind("rolls", { sources: [{ providerClass: { name: "store" } }], rollout: { consumersOf: ["store"] } });
    await shop.rolledOut("rolls", 0);
    await report(team, "elsewhere-1", "elsewhere", { password: "v9" });
    await report(team, "web-1", "store", { password: "v2" });
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { web: 1, idle: 0 });
    // New pods have the current version. The last old pod still has the earlier one, because the driver has not updated it.
    await report(team, "web-2", "store", { password: "v2" });
    await unreport(team, "web-1", "store");
    await rolloutBarrier(team, controller);
    assert.deepEqual(await shop.restarts(), { web: 1, idle: 0 });
    // No pod mounts it for a while, and new pods have the version of their time.
    await unreport(team, "web-2", "store");
    await rolloutBarrier(team, controller);
    await report(team, "web-3", "store", { password: "v3" });
    await rolloutBarrier(team, controller);
    assert.deepEqual(await shop.restarts(), { web: 1, idle: 0 });
    // The driver changes versions while no controller runs.
    await controller.stop();
    await report(team, "web-3", "store", { password: "v4" });
    await report(team, "web-4", "store", { password: "v3" });
    await controller.start();
    await shop.rolledOut("rolls", 2, 60_000);
    assert.deepEqual(await shop.restarts(), { web: 2, idle: 0 });
    await report(team, "web-4", "store", { password: "v4" });
    await rolloutBarrier(team, controller);
    assert.deepEqual(await shop.restarts(), { web: 2, idle: 0 });
    const { json } = await inlayJson(controlPlane().kubeconfigFile, "explain", "rolls", "-n", team.namespace);
    const [{ kind, state }] = json.sources;
    assert.deepEqual([kind, state, json.rollout.trackedValues], ["SecretProviderClass", "Found", ["store/*"]]);
  });

  it("restart by Reloader's annotations where the class writes no Secret and the configuration enables it", async () => {
    const shop = await newShop();
    const { team } = shop;
    await newClass(team, "store", {});
    await newClass(team, "written", { bucket: ["token"] });
    await shop.rotate("bucket");
    await shop.make(mounting("web", "store", CLASS_AUTO), mounting("api", "written", CLASS_AUTO));
    const made = ["web", "api"].map((name) => `reloader-deployment-${name}`);
    await untilMade(team, made);
    const sources = (await madeIn(team)).map(({ spec }) => Object.keys(spec.sources[0]).sort());
    assert.deepEqual(sources, [
      ["name", "optional", "secret"],
      ["name", "optional", "providerClass"],
    ]);
    assert.deepEqual(await warningsOn(team, "web"), []);
    await report(team, "web-1", "store", { password: "v1" });
    await report(team, "api-1", "written", { token: "v1" });
    await shop.restartedBy(() => report(team, "web-1", "store", { password: "v2" }), ["web"], made);
    await shop.restartedBy(() => report(team, "api-1", "written", { token: "v2" }), [], made);
    await shop.restartedBy(() => shop.rotate("bucket"), ["api"], made);
  });
});
