/** Connections that go silent without a word: nothing is lost, and nothing is written twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** Longer than it takes until a PING is missed, and shorter than until a connection is given up. */
const SILENT_MS = 4_000;
/** A silent connection is given up after ten seconds, and a new one is begun within two more. */
const NOTICED_MS = 14_000;

describe("when its connections", function () {
  this.timeout("1m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("go silent for good, it notices within seconds and takes others", async () => {
    const { fleet, proxy } = proxied;
    const { accepted } = proxy;
    proxy.stall();
    await fleet.rotate();
    await eventually(() => assert.ok(proxy.accepted > accepted), NOTICED_MS);
    proxy.cut();
    proxy.resume();
    await fleet.inStep();
    await proxied.isWell();
  });

  it("go silent for a while, nothing is lost and nothing is written twice", async () => {
    const { proxy } = proxied;
    await proxied.rotate(() => proxy.stallFor(SILENT_MS));
    await proxied.isWell();
  });

  it("lead to an API server that is paused, it goes on when that does", async () => {
    const { apiServer } = controlPlane();
    const restarts = await proxied.restarts();
    await apiServer.kill("SIGSTOP");
    try {
      await eventually(async () => assert.ok((await proxied.restarts()) > restarts), NOTICED_MS);
    } finally {
      await apiServer.kill("SIGCONT");
    }
    await proxied.isWell();
  });
});
