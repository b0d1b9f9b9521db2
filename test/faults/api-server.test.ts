/** An API server that is killed, or forgets: the controller goes on by itself where that ends. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** How long streams may be away after a start of the API server: it begins by refusing, and pauses grow. */
const TROUBLE_MS = 45_000;

describe("a controller whose API server", function () {
  this.timeout("2m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  /** How often bindings of the fleet have said that they may not. */
  async function forbiddenEvents(): Promise<number> {
    const { team } = proxied.fleet;
    const { items } = await team.api.get(team.path("events.k8s.io/v1", "events"));
    const forbidden = items.filter(
      ({ reason }: AnyObject) => reason === "Forbidden" || reason === "ImpersonationForbidden",
    );
    return forbidden.reduce((sum: number, { series }: AnyObject) => sum + (series?.count ?? 1), 0);
  }

  it("is killed and started again, hears of what changes right after", async () => {
    const { apiServer } = controlPlane();
    await apiServer.kill("SIGKILL");
    await eventually(async () => assert.ok((await proxied.streams("interrupted")) > 0));
    await apiServer.start();
    await proxied.rotate();
    await proxied.isWell(TROUBLE_MS);
  });

  it("is killed in the middle of its work and started again, writes each target once", async () => {
    const { apiServer } = controlPlane();
    const { fleet } = proxied;
    const before = await fleet.generations();
    await fleet.rotate();
    await apiServer.kill("SIGKILL");
    await apiServer.start();
    await fleet.inStep();
    // What was written as it died is not in the audit log.
    await proxied.changedOnce(before);
    await proxied.isWell(TROUBLE_MS);
  });

  it("refuses everything until it has read its roles, is not believed at once", async () => {
    const { apiServer } = controlPlane();
    const { fleet, controller } = proxied;
    const [from, before] = [controller.output.length, await forbiddenEvents()];
    for (let times = 0; times < 3; times++) {
      await apiServer.kill("SIGKILL");
      await Promise.all([apiServer.start(), fleet.rotate().catch(() => {})]);
      await fleet.rotate();
      await fleet.inStep(TROUBLE_MS);
    }
    assert.equal(await forbiddenEvents(), before);
    assert.doesNotMatch(controller.output.slice(from), /deploy\/manifests/);
  });

  it("has forgotten all that happened meanwhile, as etcd was compacted, finds out what is different", async () => {
    const { proxy, fleet } = proxied;
    const { apiServer } = controlPlane();
    const [expired, before] = [await proxied.restarts("expired"), await fleet.generations()];
    proxy.stall();
    proxy.cut();
    await fleet.rotate();
    await controlPlane().compact();
    await apiServer.kill();
    await apiServer.start();
    proxy.resume();
    await fleet.inStep();
    await proxied.changedOnce(before);
    assert.ok((await proxied.restarts("expired")) > expired);
    await proxied.isWell(TROUBLE_MS);
  });
});
