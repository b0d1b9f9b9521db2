/** Shows workloads that restart when a source is created or deleted: by rollout.restartOn, and by Reloader's annotations. */
import assert from "node:assert/strict";
import { annotated, named, newShop, type Shop } from "../controller/annotated.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { installReloader, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const BOTH = ["SourceCreated", "SourceDeleted"];
/** Pods with this volume start without the Secret. */
const optional = (secretName: string) => ({ volumes: [{ name: "s", secret: { secretName, optional: true } }] });

describe("a source that is created or deleted", function () {
  this.timeout("3m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    controller = await reloading({
      namespaces: ["team-*"],
      reloadOnCreate: true,
      reloadOnDelete: true,
      sourceSelector: { matchExpressions: [{ key: "reload", operator: "NotIn", values: ["no"] }] },
    });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
  });

  it("restarts once the workloads that can start without it, also while no controller runs, and the others once it is recreated", async () => {
    const team = await createNamespace({ rules: rolloutRules, controller: false });
    const shop = new Workloads(team);
    const value = secretText("token");
    const [create, remove] = [
      () => team.secret("bucket", { token: value }),
      () => team.api.delete(`${team.path("v1", "secrets")}/bucket`),
    ];
    await shop.deploy({ may: { pods: optional("bucket") }, must: { pods: { volumes: [] }, envFrom: [] } });
    await team.bind("rolls", {
      sources: [{ secret: { name: "bucket" }, optional: true }],
      rollout: { targets: [{ kind: "Deployment", selector: { names: ["m*"] } }], restartOn: BOTH },
    });
    await shop.rolledOut("rolls", 0);
    assert.deepEqual((await team.binding("rolls")).status.rollout.digests, { "bucket/*": "absent" });
    await create();
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { may: 1, must: 1 });
    // From now on, its pods require the Secret.
    const env = [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "bucket", key: "token" } } }];
    await team.api.jsonPatch(
      shop.path("must"),
      [{ op: "add", path: "/spec/template/spec/containers/0/env", value: env }],
      "kubectl",
    );
    await shop.run(["may", "must"]);
    await remove();
    const { status } = await shop.until("rolls", "RestartBlocked");
    assert.match(JSON.stringify(status.conditions), /source bucket\b/);
    assert.deepEqual(await shop.restarts(), { may: 2, must: 2 });
    // The former value is back: the workload that restarted without it restarts once more, and the other one does not.
    await create();
    await shop.rolledOut("rolls", 2);
    assert.deepEqual(await shop.restarts(), { may: 3, must: 2 });
    await controller.stop();
    await team.api.jsonPatch(
      shop.path("must"),
      [{ op: "remove", path: "/spec/template/spec/containers/0/env" }],
      "kubectl",
    );
    await shop.run(["must"]);
    await remove();
    await controller.start();
    await shop.rolledOut("rolls", 3, 60_000);
    assert.deepEqual(await shop.restarts(), { may: 4, must: 4 });
    await rolloutBarrier(team, controller);
    assert.deepEqual(await shop.restarts(), { may: 4, must: 4 });
  });

  it("restarts by Reloader's annotations where the configuration enables it", async () => {
    const shop: Shop = await newShop();
    const { team } = shop;
    const listing = { "secret.reloader.stakater.com/reload": "later" };
    await shop.make(annotated("core", listing), annotated("other", { "reloader.stakater.com/auto": "true" }));
    const made = named("core", "other");
    const [binding] = await untilMade(team, made);
    assert.deepEqual(binding?.spec.rollout.restartOn, BOTH);
    await shop.restartedBy(() => shop.rotate("later"), ["core"], made);
    await shop.restartedBy(() => team.api.delete(`${team.path("v1", "secrets")}/later`), ["core"], made);
    await shop.restartedBy(() => shop.rotate("later"), ["core"], made);
    // Its pods read the Secret `one` by a reference that is not optional.
    await team.api.delete(`${team.path("v1", "secrets")}/one`);
    await eventually(async () => {
      const { status } = await team.binding("reloader-deployment-other");
      assert.match(JSON.stringify(status.conditions), /RestartBlocked/);
    });
    await shop.rotate("one");
    await shop.rolledOut("reloader-deployment-other", 1);
  });

  it("restarts nothing when its annotation or labels exclude it, also at its creation", async () => {
    const shop: Shop = await newShop();
    const { team } = shop;
    const names = ["marked", "labelled", "marked-too", "labelled-too"];
    const made = names.map((name) => annotated(name, { "secret.reloader.stakater.com/reload": `${name},later` }));
    await shop.make(...made);
    await untilMade(team, named(...names));
    const secrets = team.path("v1", "secrets");
    const data = { token: Buffer.from(secretText("token")).toString("base64") };
    const leaveOut = (name: string) =>
      name.startsWith("marked")
        ? { annotations: { "reloader.stakater.com/ignore": "true" } }
        : { labels: { reload: "no" } };
    const create = (name: string) => team.api.create(secrets, { metadata: { name, ...leaveOut(name) }, data });
    await shop.restartedBy(() => Promise.all(names.map(create)), [], named(...names));
    // A binding that no longer names it has been updated, and compares the remaining sources.
    await shop.restartedBy(() => shop.rotate("later"), names, named(...names));
  });
});
