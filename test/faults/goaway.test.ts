/** An API server that sends its clients away now and then: the controller goes on over other connections. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { Behind } from "./proxied-controller.ts";

describe("an API server that sends clients away with GOAWAY, as one behind a load balancer does,", function () {
  this.timeout("2m");
  const MOST_OFTEN = "--goaway-chance=0.02";
  let behind: Behind;

  before(async () => {
    const { apiServer } = controlPlane();
    await apiServer.kill();
    await apiServer.start(MOST_OFTEN);
    behind = await Behind.start(40);
  });
  after(async () => {
    await behind?.stop();
    const { apiServer } = controlPlane();
    await apiServer.kill();
    await apiServer.start();
  });

  it("is gone on with over another connection, whatever it sends away", async () => {
    const { accepted } = behind.proxy;
    for (let time = 0; time < 8; time++) await behind.rotate();
    assert.ok(behind.proxy.accepted - accepted >= 5, `${behind.proxy.accepted - accepted} connections`);
    await behind.isWell();
  });
});
