/** An object that the API server cannot read: the controller tries again until it can, and writes nothing twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** How long it may take until all is well after a server had trouble: pauses grow to 30 s, its own and ours. */
const TROUBLE_MS = 45_000;

describe("when the API server refuses", function () {
  this.timeout("2m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("a kind with 500 on list, since one object of it can't be read, it goes on once they all can", async () => {
    const { fleet, controller } = proxied;
    const [mark, before] = [await auditLog().mark(), await fleet.generations()];
    const heal = await controlPlane().spoil(`/registry/secrets/${fleet.team.namespace}/spoilt`);
    try {
      await fleet.rotate();
      // It lists anew only where it has no version to go on from.
      await controller.stop();
      await controller.start();
      await eventually(async () => {
        const requests = await requestsFor(fleet.team, mark);
        assert.ok(
          requests.some(({ verb, resource, code }) => verb === "list" && resource === "secrets" && code === 500),
        );
      });
    } finally {
      await heal();
    }
    await fleet.inStep(TROUBLE_MS);
    await proxied.changedOnce(before);
    // The API server takes its time too: until its own cache is filled anew, it grants watches and sends nothing.
    await proxied.rotate(undefined, TROUBLE_MS);
    await proxied.isWell();
  });
});
