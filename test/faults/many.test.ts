/** Many streams, connections and changes. None starves another, and no change is lost or written twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Fleet } from "../controller/fleet.ts";
import { scaled } from "../controller/scale.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, usualRules } from "../controller/test-namespace.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** The limit for a busy machine. A request that watches keep from being sent fails after 15 s. */
const AT_ONCE_MS = 14_000;
const MANY = scaled(1_000, 80);

describe("a controller with a stream for each of 160 names", function () {
  this.timeout("2m");
  let proxied: ProxiedController;

  before(async () => {
    const resourceNames = Array.from({ length: 80 }, (_, index) => `harbor-${index}`);
    proxied = await ProxiedController.start(80, { rules: usualRules.map((rule) => ({ ...rule, resourceNames })) });
    assert.ok((await proxied.streams("synced")) > 160);
  });
  after(() => proxied?.stop());

  it("writes a change at once", async () => {
    const { fleet } = proxied;
    const [first = ""] = fleet.names;
    for (let time = 0; time < 3; time++) {
      await fleet.rotate([first]);
      await eventually(async () => assert.deepEqual(await fleet.behind(), []), AT_ONCE_MS);
    }
  });

  it("starts all streams again when all connections are cut, and none of them twice", async () => {
    const streams = await proxied.streams("synced");
    proxied.proxy.cut();
    await proxied.rotate();
    await proxied.isWell();
    assert.equal(await proxied.streams("synced"), streams);
  });
});

describe(`a controller that is killed in the middle of ${MANY} changes`, function () {
  this.timeout("5m");
  const controllers: ControllerProcess[] = [];
  let fleet: Fleet;

  const newController = async () => {
    const controller = new ControllerProcess(controlPlane());
    controllers.push(controller);
    await controller.start();
    return controller;
  };

  before(async () => {
    await stopSharedController();
    await newController();
    fleet = new Fleet(await createNamespace({ controller: false }), MANY);
    await fleet.launch(120_000);
  });
  after(async () => {
    await Promise.all(controllers.map((controller) => controller.stop()));
    await fleet.disband();
  });

  it("has changed each target once after another controller has finished the work", async () => {
    const before = await fleet.generations();
    const written = () => controllers[0]?.output.split('"msg":"wrote"').length ?? 0;
    const writtenBefore = written();
    const rotated = fleet.rotate();
    // The log shows this at once. Reading all targets takes as long as writing many of them.
    await eventually(() => assert.ok(written() - writtenBefore > scaled(300, 30)), 60_000);
    await controllers[0]?.stop("SIGKILL");
    await rotated;
    assert.ok((await fleet.behind()).length > scaled(100, 0));
    await newController();
    await fleet.inStep(120_000);
    const after = await fleet.generations();
    const twice = fleet.names.filter((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0) !== 1);
    assert.deepEqual(twice, []);
  });
});
