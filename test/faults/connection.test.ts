/** Connections that are cut, or go silent without a word: nothing is lost, and nothing is written twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { Behind } from "./behind.ts";

/** Longer than it takes until a PING is missed, and shorter than until a connection is given up. */
const SILENT_MS = 4_000;
/** A silent connection is given up after ten seconds, and a new one is begun within two more. */
const NOTICED_MS = 14_000;

describe("when its connections", function () {
  this.timeout("1m");
  let behind: Behind;

  before(async () => {
    behind = await Behind.start(40);
  });
  after(() => behind?.stop());

  it("are cut time and again, the controller goes on, and tells that it watches anew", async () => {
    const restarts = await behind.restarts("unavailable");
    for (let time = 0; time < 3; time++) {
      assert.ok(behind.proxy.cut() > 0);
      await behind.rotate();
    }
    assert.ok((await behind.restarts("unavailable")) > restarts);
    await behind.isWell();
  });

  it("are cut while forty Secrets change, each target is written once", async () => {
    const { fleet, proxy } = behind;
    await behind.rotate(async () => {
      await eventually(async () => assert.ok((await fleet.behind()).length < fleet.names.length));
      for (let time = 0; time < 3; time++) {
        const { accepted } = proxy;
        proxy.cut();
        await eventually(() => assert.ok(proxy.accepted > accepted));
      }
    });
    await behind.isWell();
  });

  it("are cut after changes that it did not hear of, it hears of them", async () => {
    const { fleet, proxy } = behind;
    proxy.stall();
    await fleet.rotate();
    proxy.resume();
    proxy.cut();
    await fleet.inStep();
    await behind.isWell();
  });

  it("go silent for good, it notices within seconds and takes others", async () => {
    const { fleet, proxy } = behind;
    const { accepted } = proxy;
    proxy.stall();
    await fleet.rotate();
    await eventually(() => assert.ok(proxy.accepted > accepted), NOTICED_MS);
    proxy.cut();
    proxy.resume();
    await fleet.inStep();
    await behind.isWell();
  });

  it("go silent for a while, nothing is lost and nothing is written twice", async () => {
    const { proxy } = behind;
    await behind.rotate(() => proxy.stallFor(SILENT_MS));
    await behind.isWell();
  });

  it("lead to an API server that is paused, it goes on when that does", async () => {
    const { apiServer } = controlPlane();
    const restarts = await behind.restarts();
    await apiServer.kill("SIGSTOP");
    try {
      await eventually(async () => assert.ok((await behind.restarts()) > restarts), NOTICED_MS);
    } finally {
      await apiServer.kill("SIGCONT");
    }
    await behind.isWell();
  });
});
