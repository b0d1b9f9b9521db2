/** An API server that sometimes closes connections with GOAWAY. The controller continues over other connections. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ProxiedController } from "./proxied-controller.ts";

describe("an API server that closes connections with GOAWAY, as one behind a load balancer does", function () {
  this.timeout("2m");
  const MOST_OFTEN = "--goaway-chance=0.02";
  let proxied: ProxiedController;

  before(async () => {
    const { apiServer } = controlPlane();
    await apiServer.kill();
    await apiServer.start(MOST_OFTEN);
    proxied = await ProxiedController.start(40);
  });
  after(async () => {
    await proxied?.stop();
    const { apiServer } = controlPlane();
    await apiServer.kill();
    await apiServer.start();
  });

  it("does not stop the controller, which continues over another connection", async () => {
    const { accepted } = proxied.proxy;
    for (let time = 0; time < 8; time++) await proxied.rotate();
    assert.ok(proxied.proxy.accepted - accepted >= 5, `${proxied.proxy.accepted - accepted} connections`);
    await proxied.isWell();
  });
});
