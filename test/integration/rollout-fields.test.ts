/** Shows that workloads without a pod template restart by the field that their operator reads. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { CLUSTER, newSite, open, type Site } from "../controller/fields.ts";
import { type Kind, removeKind } from "../controller/kinds.ts";
import { deployment } from "../controller/workloads.ts";

const STAMP = /^1-[0-9a-f]{6}-[0-9a-f]{10}$/;

/** Like Argo's kind, in another version that Argo does not have. Other tests install Argo's version. */
const ROLLOUT: Kind = { group: "argoproj.io", kind: "Rollout", plural: "rollouts", spec: open, status: open };

/** The status that the controller of a workload writes. */
const say = ({ team, path }: Site, status: object) => team.api.merge(`${path}/status`, { status });

describe("a workload that restarts by a field", function () {
  this.timeout("2m");

  after(() => removeKind(new Api(controlPlane()), ROLLOUT));

  it("can be an Argo Rollout with spec.restartAt, set to a time after the change, until all of its pods are newer", async () => {
    const template = (deployment("main") as AnyObject).spec.template;
    const site = await newSite(ROLLOUT, { template }, "spec.restartAt");
    const { shop, rotate, workload } = site;
    await say(site, { observedGeneration: "1", phase: "Healthy" });
    await shop.rolledOut("main", 0);
    assert.equal((await workload()).spec.restartAt, undefined);
    const before = Date.now();
    await rotate();
    const { spec, metadata } = await eventually(async () => {
      const found = await workload();
      assert.ok(found.spec.restartAt);
      return found;
    });
    assert.match(spec.restartAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.ok(Date.parse(spec.restartAt) > before);
    assert.deepEqual(spec.template, template);
    await say(site, { observedGeneration: String(metadata.generation) });
    const pending = await eventually(async () => {
      const { status } = await shop.until("main", "RollingOut");
      assert.match(JSON.stringify(status.rollout.pending), /older than spec\.restartAt/);
      return status.rollout.pending;
    });
    assert.equal(pending.workloads[0].state, "Rolling");
    await say(site, { restartedAt: spec.restartAt });
    await shop.rolledOut("main", 1);
    const manager = metadata.managedFields.find((each: AnyObject) => each.manager === "inlay-rollout");
    assert.deepEqual(manager.fieldsV1, {
      "f:metadata": { "f:annotations": { ".": {}, "f:inlay.dev/restarts": {} } },
      "f:spec": { "f:restartAt": {} },
    });
  });

  it("can have an annotation of its own, as CloudNativePG has it, and nothing else changes", async () => {
    const annotation = "kubectl.kubernetes.io/restartedAt";
    const restartPath = `metadata.annotations["${annotation}"]`;
    const site = await newSite(CLUSTER, { instances: 3 }, restartPath, { value: "Time" });
    const { shop, rotate, workload } = site;
    await shop.rolledOut("main", 0);
    const times: string[] = [];
    for (const revision of [1, 2]) {
      await rotate();
      await shop.rolledOut("main", revision);
      const { metadata, spec } = await workload();
      assert.deepEqual([metadata.generation, spec], [1, { instances: 3 }]);
      times.push(metadata.annotations[annotation]);
    }
    assert.ok(times.every((time) => !Number.isNaN(Date.parse(time))));
    assert.equal(new Set(times).size, 2);
  });

  it("can have an annotation of its pods, as the operator of Zalando has it", async () => {
    const podAnnotations = { "example.com/kept": "yes" };
    const site = await newSite(CLUSTER, { instances: 1, podAnnotations }, 'spec.podAnnotations["inlay.dev/rollout"]');
    const { shop, rotate, workload } = site;
    await say(site, { observedGeneration: 1 });
    await shop.rolledOut("main", 0);
    await rotate();
    const { pending } = (await shop.until("main", "RollingOut")).status.rollout;
    assert.equal(pending.workloads[0].state, "Rolling");
    const { "inlay.dev/rollout": stamp, ...others } = (await workload()).spec.podAnnotations;
    assert.match(stamp, STAMP);
    assert.deepEqual(others, podAnnotations);
    await say(site, { observedGeneration: 2 });
    await shop.rolledOut("main", 1);
  });

  it("can have a text field that its schema declares, whatever its kind", async () => {
    const { shop, rotate, workload } = await newSite(CLUSTER, { instances: 1 }, "spec.restartToken");
    await shop.rolledOut("main", 0);
    await rotate();
    await shop.rolledOut("main", 1);
    assert.match((await workload()).spec.restartToken, STAMP);
  });

  it("can be a Strimzi resource with the value true, which Strimzi removes after the restart", async () => {
    const restartPath = 'metadata.annotations["strimzi.io/manual-rolling-update"]';
    const site = await newSite(CLUSTER, { instances: 3 }, restartPath);
    const { team, shop, path, rotate, workload } = site;
    await shop.rolledOut("main", 0);
    for (const revision of [1, 2]) {
      await rotate();
      await shop.until("main", "RollingOut");
      await eventually(async () => {
        const { status } = await team.binding("main");
        assert.match(JSON.stringify(status.rollout.pending), /Strimzi .*metadata/);
      });
      assert.equal((await workload()).metadata.annotations["strimzi.io/manual-rolling-update"], "true");
      await team.api.merge(path, { metadata: { annotations: { "strimzi.io/manual-rolling-update": null } } });
      await shop.rolledOut("main", revision);
    }
    assert.deepEqual(Object.keys((await workload()).metadata.annotations), ["inlay.dev/restarts"]);
    // A change during a restart takes effect after it, because some pods may have the former value.
    await rotate();
    await shop.until("main", "RollingOut");
    await rotate();
    const { status } = await shop.until("main", "RestartBlocked");
    assert.match(JSON.stringify(status.conditions), /main .*restarting/);
    for (const left of [true, false]) {
      await team.api.merge(path, { metadata: { annotations: { "strimzi.io/manual-rolling-update": null } } });
      if (left) await shop.until("main", "RollingOut");
      if (left) assert.ok((await workload()).metadata.annotations["strimzi.io/manual-rolling-update"]);
    }
    await shop.rolledOut("main", 3);
  });

  it("requires a valid field, and reports an invalid one before a restart is due", async () => {
    for (const [restartPath, reason, message] of [
      ["status.restartAt", "ForbiddenPath", /status\.restartAt.* controller/],
      ["spec.shards[0].restart", "InvalidPath", /list/],
      ["spec.restartAt", "UnknownField", /spec has .*instances/],
      ["spec.instances", "TypeMismatch", /spec\.instances/],
      ["spec.pods.serviceAccountName", "ForbiddenPath", /pod spec/],
      ["spec.settings.restart", "ForbiddenPath", /schema/],
    ] as const) {
      const { shop } = await newSite(CLUSTER, { instances: 3 }, restartPath);
      const { status } = await shop.until("main", reason);
      const said = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
      assert.match(said.message, message);
    }
    const both = newSite(CLUSTER, {}, "spec.restartAt", {}).then(({ team }) =>
      team.rebind("main", {
        rollout: { targets: [{ kind: "Deployment", name: "a", template: "spec.template", restartPath: "spec.x" }] },
      }),
    );
    await assert.rejects(both, /both template and restartPath/);
  });
});
