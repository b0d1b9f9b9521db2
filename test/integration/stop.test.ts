/** Shows how the controller stops: after the requests under way when it gets one signal, at once when it gets two. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { Fleet } from "../controller/fleet.ts";
import { watchesFor } from "../controller/requests.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace } from "../controller/test-namespace.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/inlay-system/leases/inlay-controller";

describe("a controller that is stopped", function () {
  this.timeout("1m");
  let controller: ControllerProcess;
  let fleet: Fleet;
  let begun: number;

  before(async () => {
    await stopSharedController();
    begun = await auditLog().mark();
    controller = new ControllerProcess(controlPlane(), "--leader-elect");
    await controller.start();
    fleet = new Fleet(await createNamespace({ controller: false }), 60);
    await fleet.launch();
  });
  after(() => controller.stop("SIGKILL"));

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`by ${signal} in the middle of many writes finishes the writes under way, and exits with 0`, async () => {
      await controller.start();
      await fleet.inStep();
      const [former, before] = [fleet.pairs, await fleet.generations()];
      const written = () => controller.output.split('"msg":"wrote"').length;
      const writtenBefore = written();
      const rotated = fleet.rotate();
      // The log shows the first writes sooner than the API server, which is busy with the others.
      await eventually(() => assert.ok(written() > writtenBefore));
      assert.equal(await controller.stop(signal), 0);
      assert.match(controller.output, /"msg":"controller stopped"\}\n$/);
      await rotated;
      assert.deepEqual(await fleet.torn(former), []);
      const behind = await fleet.behind();
      assert.ok(behind.length > 0, "everything was written before it was stopped");
      // Status shows all that was written, because no controller could add it later.
      const after = await fleet.generations();
      const changed = fleet.names.filter((name) => after.get(name) !== before.get(name));
      assert.deepEqual(changed.sort(), fleet.names.filter((name) => !behind.includes(name)).sort());
    });
  }

  it("leaves the Lease without a holder, and no watch open", async () => {
    assert.equal((await fleet.team.api.get(LEASE)).spec.holderIdentity, undefined);
    await eventually(async () => {
      const watches = await watchesFor(fleet.team, begun);
      assert.ok(watches.length > 0);
      assert.deepEqual(
        watches.filter(({ open }) => open),
        [],
      );
    });
  });

  it("continues when it is started again", async () => {
    await controller.start();
    await fleet.inStep();
  });

  it("by two signals exits at once", async () => {
    const { apiServer } = controlPlane();
    await fleet.inStep();
    await apiServer.kill("SIGSTOP");
    try {
      // The release of the Lease takes as long as a request may, because the API server does not answer. One signal would exit
      // with 0.
      const again = setInterval(() => controller.signal("SIGTERM"), 300);
      controller.signal("SIGTERM");
      const code = await controller.ended().finally(() => clearInterval(again));
      assert.equal(code, 128 + 15, controller.output.slice(-1_000));
    } finally {
      await apiServer.kill("SIGCONT");
    }
  });
});
