/** An API server that is killed, or forgets: the controller goes on by itself where that ends. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { Behind } from "./proxied-controller.ts";

/** How long streams may be away after a start of the API server: it begins by refusing, and pauses grow. */
const TROUBLE_MS = 45_000;

describe("a controller whose API server", function () {
  this.timeout("2m");
  let behind: Behind;

  before(async () => {
    behind = await Behind.start(40);
  });
  after(() => behind?.stop());

  it("is killed and started again, hears of what changes right after", async () => {
    const { apiServer } = controlPlane();
    await apiServer.kill("SIGKILL");
    await eventually(async () => assert.ok((await behind.streams("interrupted")) > 0));
    await apiServer.start();
    await behind.rotate();
    await behind.isWell(TROUBLE_MS);
  });

  it("is killed in the middle of its work and started again, writes each target once", async () => {
    const { apiServer } = controlPlane();
    const { fleet } = behind;
    const before = await fleet.generations();
    await fleet.rotate();
    await apiServer.kill("SIGKILL");
    await apiServer.start();
    await fleet.inStep();
    // What was written as it died is not in the audit log.
    await behind.changedOnce(before);
    await behind.isWell(TROUBLE_MS);
  });

  it("has forgotten all that happened meanwhile, as etcd was compacted, finds out what is different", async () => {
    const { proxy, fleet } = behind;
    const { apiServer } = controlPlane();
    const [expired, before] = [await behind.restarts("expired"), await fleet.generations()];
    proxy.stall();
    proxy.cut();
    await fleet.rotate();
    await controlPlane().compact();
    await apiServer.kill();
    await apiServer.start();
    proxy.resume();
    await fleet.inStep();
    await behind.changedOnce(before);
    assert.ok((await behind.restarts("expired")) > expired);
    await behind.isWell(TROUBLE_MS);
  });
});
