/** An API server that is killed, or loses its history. The controller recovers by itself. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** How long watches may be interrupted after the API server starts. It refuses requests at first, and the backoff grows. */
const TROUBLE_MS = 45_000;

describe("a controller", function () {
  this.timeout("2m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  /** How often bindings of the fleet have reported Forbidden. */
  async function forbiddenEvents(): Promise<number> {
    const { team } = proxied.fleet;
    const { items } = await team.api.get(team.path("events.k8s.io/v1", "events"));
    const forbidden = items.filter(
      ({ reason }: AnyObject) => reason === "Forbidden" || reason === "ImpersonationForbidden",
    );
    return forbidden.reduce((sum: number, { series }: AnyObject) => sum + (series?.count ?? 1), 0);
  }

  it("reads the changes right after its API server is killed and started again", async () => {
    const { apiServer } = controlPlane();
    await apiServer.kill("SIGKILL");
    await eventually(async () => assert.ok((await proxied.streams("interrupted")) > 0));
    await apiServer.start();
    await proxied.rotate();
    await proxied.isWell(TROUBLE_MS);
  });

  it("writes each target once when its API server is killed during writes and started again", async () => {
    const { apiServer } = controlPlane();
    const { fleet } = proxied;
    const before = await fleet.generations();
    await fleet.rotate();
    await apiServer.kill("SIGKILL");
    await apiServer.start();
    await fleet.inStep();
    // The audit log lacks what the API server wrote while it was killed.
    await proxied.changedOnce(before);
    await proxied.isWell(TROUBLE_MS);
  });

  it("does not report Forbidden at once when its API server refuses all requests until it has loaded its roles", async () => {
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

  it("writes the differences when its API server has lost the history to a compaction of etcd", async () => {
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
