/** Connections that are cut. No change is lost, and nothing is written twice. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { ProxiedController } from "./proxied-controller.ts";

describe("a controller", function () {
  this.timeout("1m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("continues when its connections are cut repeatedly, and counts the watches that it starts again", async () => {
    const restarts = await proxied.restarts("unavailable");
    for (let time = 0; time < 3; time++) {
      assert.ok(proxied.proxy.cut() > 0);
      await proxied.rotate();
    }
    assert.ok((await proxied.restarts("unavailable")) > restarts);
    await proxied.isWell();
  });

  it("writes each target once when its connections are cut while forty Secrets change", async () => {
    const { fleet, proxy } = proxied;
    await proxied.rotate(async () => {
      await eventually(async () => assert.ok((await fleet.behind()).length < fleet.names.length));
      for (let time = 0; time < 3; time++) {
        const { accepted } = proxy;
        proxy.cut();
        await eventually(() => assert.ok(proxy.accepted > accepted));
      }
    });
    await proxied.isWell();
  });

  it("reads the changes that happened while its connections were cut", async () => {
    const { fleet, proxy } = proxied;
    proxy.stall();
    await fleet.rotate();
    proxy.resume();
    proxy.cut();
    await fleet.inStep();
    await proxied.isWell();
  });
});
