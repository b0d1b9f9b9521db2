/** An object that the API server cannot decode. The controller retries until it can, and writes nothing twice. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { ProxiedController } from "./proxied-controller.ts";

/** How long recovery may take after a server had trouble. The backoff of the server and of Inlay grows to 30 s. */
const TROUBLE_MS = 45_000;

describe("when the API server refuses", function () {
  this.timeout("2m");
  let proxied: ProxiedController;

  before(async () => {
    proxied = await ProxiedController.start(40);
  });
  after(() => proxied?.stop());

  it("list of a kind with 500, because one object can't be decoded, the controller continues once all can", async () => {
    const { fleet, controller } = proxied;
    const [mark, before] = [await auditLog().mark(), await fleet.generations()];
    const heal = await controlPlane().spoil(`/registry/secrets/${fleet.team.namespace}/spoilt`);
    try {
      await fleet.rotate();
      // The controller lists again only if it has no version to watch from.
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
    // The API server needs time too. Until its own cache is filled again, it accepts watches and sends no events.
    await proxied.rotate(undefined, TROUBLE_MS);
    await proxied.isWell();
  });
});
