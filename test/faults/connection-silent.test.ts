/** Connections that stop answering without being closed. No change is lost, and nothing is written twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** Longer than the time until a PING is missed, and shorter than the time until the client closes the connection. */
const SILENT_MS = 4_000;
/** The client closes a silent connection after ten seconds, and opens a new one within two more. */
const NOTICED_MS = 14_000;

describe("a controller", function () {
  this.timeout("1m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("notices within seconds that its connections are silent permanently, and opens others", async () => {
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

  it("loses no change and writes nothing twice when its connections are silent for a while", async () => {
    const { proxy } = proxied;
    await proxied.rotate(() => proxy.stallFor(SILENT_MS));
    await proxied.isWell();
  });

  it("continues when its paused API server continues", async () => {
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
