/** Connections that are cut: nothing is lost, and nothing is written twice. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { ProxiedController } from "./proxied-controller.ts";

describe("when its connections", function () {
  this.timeout("1m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("are cut time and again, the controller goes on, and tells that it watches anew", async () => {
    const restarts = await proxied.restarts("unavailable");
    for (let time = 0; time < 3; time++) {
      assert.ok(proxied.proxy.cut() > 0);
      await proxied.rotate();
    }
    assert.ok((await proxied.restarts("unavailable")) > restarts);
    await proxied.isWell();
  });

  it("are cut while forty Secrets change, each target is written once", async () => {
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

  it("are cut after changes that it did not hear of, it hears of them", async () => {
    const { fleet, proxy } = proxied;
    proxy.stall();
    await fleet.rotate();
    proxy.resume();
    proxy.cut();
    await fleet.inStep();
    await proxied.isWell();
  });
});
