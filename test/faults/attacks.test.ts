/**
 * Tenants who try to stop the controller for all by the size and number of their objects, at the size that did stop it with
 * INLAY_TEST_SCALE=1: it neither ends nor blocks, and serves others, also when it starts beside all these objects.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ATTACKS } from "../controller/attacks/all.ts";
import { AttackedController, configFile } from "../controller/attacks/attacked.ts";
import { type Served, Victim } from "../controller/attacks/victim.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { fullOr } from "../controller/scale.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace } from "../controller/test-namespace.ts";

const SCALE = fullOr(1, 0.1);
const BLOCKED_MS = 1_000;
const CHANGED_WITHIN_MS = 2_000;
/** How long the tenant's objects are watched when all are made. */
const WATCHED_MS = fullOr(20_000, 4_000);

describe("a controller with the memory of the shipped pod", function () {
  this.timeout("15m");
  let controller: AttackedController;
  let end: () => Promise<void> | undefined;

  beforeEach(stopSharedController);
  afterEach(async () => {
    await controller?.stop();
    await end();
    assert.deepEqual(foundIn(controller.output), []);
  });

  const isServed = ({ changes, blockedMs }: Served) => {
    assert.ok(blockedMs < BLOCKED_MS, `the event loop blocked for ${blockedMs.toFixed(0)} ms`);
    const slow = changes.filter((each) => each > CHANGED_WITHIN_MS);
    assert.deepEqual(slow, [], "changes of the victim that took too long, in ms");
  };

  for (const { tenant, prepare, launch, isReported, end: remove } of ATTACKS) {
    it(`serves others beside a tenant with ${tenant}`, async () => {
      const attacker = await createNamespace({ account: false, rules: [], controller: false });
      end = () => remove?.(attacker);
      const config = await configFile(controlPlane(), await prepare?.(attacker));
      controller = new AttackedController(controlPlane(), "--leader-elect", "--config", config);
      await controller.start();
      const victim = await Victim.beside(controller);
      await victim.change();
      isServed(await victim.during(launch(attacker, SCALE), WATCHED_MS));
      await controller.isUp();
      await isReported?.(attacker, SCALE);
      await controller.stop();
      await controller.start();
      isServed(await victim.during(Promise.resolve(), WATCHED_MS));
      await controller.isUp(2);
    });
  }
});
