/** An API server without etcd for a while. The controller recovers by itself, and a leader ends. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** How long etcd is away. This is longer than the 15 seconds that a request may take. */
const AWAY_MS = 16_000;
/** How long watches may be interrupted after that. The backoff grows. */
const TROUBLE_MS = 45_000;

describe("a controller whose API server has no etcd for a while", function () {
  this.timeout("2m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("continues when etcd is back", async () => {
    const { etcd } = controlPlane();
    await proxied.rotate(() => etcd.pauseFor(AWAY_MS), TROUBLE_MS);
    await proxied.isWell(TROUBLE_MS);
  });
});

describe("a leader whose API server has no etcd for a while", function () {
  this.timeout("2m");
  let proxied: ProxiedController;
  let successor: ControllerProcess;

  before(async () => {
    proxied = await ProxiedController.start(40, { args: ["--leader-elect"] });
    successor = new ControllerProcess(controlPlane(), "--leader-elect");
    await successor.start();
  });
  after(() => Promise.all([proxied?.stop(), successor?.stop()]));

  it("ends by itself and writes nothing more, and its successor finishes the work", async () => {
    const { etcd } = controlPlane();
    const { fleet, controller } = proxied;
    const before = await fleet.generations();
    const rotated = fleet.rotate();
    await eventually(async () => assert.ok((await fleet.behind()).length < fleet.names.length));
    await etcd.kill("SIGSTOP");
    try {
      assert.equal(await controller.ended(), 1);
    } finally {
      await etcd.kill("SIGCONT");
    }
    assert.match(controller.output, /"msg":"lost the lease"/);
    await rotated;
    await fleet.inStep(30_000);
    await eventually(() => assert.match(successor.output, /"msg":"leading"/));
    // A request that the leader sent before it ended may be written and missing in the audit log.
    await proxied.changedOnce(before);
  });
});
