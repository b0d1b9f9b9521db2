/** An API server in trouble that answers neither lists nor watches: the controller asks until it does. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { auditLog } from "../controller/shared.ts";
import { Behind } from "./behind.ts";
import { HttpProxy } from "./http-proxy.ts";

describe("an API server that", function () {
  this.timeout("2m");
  let behind: Behind<HttpProxy>;

  before(async () => {
    const plane = controlPlane();
    behind = await Behind.behind(await HttpProxy.start(plane.url, await plane.servingIdentity()), 40);
  });
  after(() => behind?.stop());

  it("refuses to list and watch with 500 is asked again until it does, and what changed meanwhile is written once", async () => {
    const { fleet, proxy } = behind;
    const [mark, before] = [await auditLog().mark(), await fleet.generations()];
    proxy.refuse((path) => path.includes("watch=true") || path.includes("limit="), 500);
    proxy.breakWatches(500, "Trouble");
    await eventually(async () => assert.notEqual(await behind.readiness(), "ok\n"), 30_000);
    await fleet.rotate();
    proxy.resume();
    await fleet.inStep(45_000);
    await behind.writtenOnce(mark, before);
    await behind.isWell(30_000);
  });
});
