/**
 * Tenants who try to stop the controller for all by the size and number of their objects: it does not end, reports what exceeds a limit, and
 * serves others, also when it starts beside all these objects. `npm test` has one attack for each mechanism, in one controller, at a
 * twentieth of the size that stopped a controller without limits. At full size, with INLAY_TEST_SCALE=1, the controller must also be
 * prompt, for which the machine must be idle.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { ATTACKS, DIFFERENT_ATTACKS } from "../controller/attacks/all.ts";
import type { Attack } from "../controller/attacks/attack.ts";
import { AttackedController, configFile } from "../controller/attacks/attacked.ts";
import { type Served, Victim } from "../controller/attacks/victim.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { fullOr } from "../controller/scale.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

const SCALE = fullOr(1, 0.05);
/** Beside other tests, the victim only has to be served. */
const BLOCKED_MS = fullOr(1_000, Number.POSITIVE_INFINITY);
const CHANGED_WITHIN_MS = fullOr(2_000, Number.POSITIVE_INFINITY);
/** A controller that starts reads all bindings first. The API server needs 7 s for 280 of 1.4 MB. */
const STARTED_WITHIN_MS = fullOr(10_000, Number.POSITIVE_INFINITY);
/** How long a tenant's objects are watched when all are made. */
const WATCHED_MS = fullOr(20_000, 1_000);

/** The attacks that one controller is exposed to. */
const GROUPS = SCALE === 1 ? ATTACKS.map((each) => [each]) : [DIFFERENT_ATTACKS];

describe("a controller with the memory of the shipped pod", function () {
  this.timeout("15m");
  let controller: AttackedController | undefined;
  let attackers: { attack: Attack; tenant: TestNamespace }[];

  beforeEach(stopSharedController);
  afterEach(async () => {
    await controller?.stop();
    for (const { attack, tenant } of attackers) await attack.end?.(tenant);
    assert.deepEqual(foundIn(controller?.output ?? ""), []);
  });

  const isResponsive = ({ blockedMs }: Served, beside: string) =>
    assert.ok(blockedMs < BLOCKED_MS, `the event loop blocked for ${blockedMs.toFixed(0)} ms beside ${beside}`);
  const isServed = (served: Served, beside: string, withinMs = CHANGED_WITHIN_MS) => {
    isResponsive(served, beside);
    const slow = served.changes.filter((each) => each > withinMs);
    assert.deepEqual(slow, [], `changes of the victim that took too long beside ${beside}, in ms`);
  };

  for (const attacks of GROUPS) {
    const [only, ...others] = attacks.map(({ tenant }) => tenant);
    it(`serves others beside a tenant with ${others.length === 0 ? only : `each of ${attacks.length} attacks`}`, async () => {
      attackers = [];
      let config: object = {};
      for (const attack of attacks) {
        const tenant = await createNamespace({ account: false, rules: [], controller: false });
        attackers.push({ attack, tenant });
        config = { ...config, ...(await attack.prepare?.(tenant)) };
      }
      controller = new AttackedController(
        controlPlane(),
        "--leader-elect",
        "--config",
        await configFile(controlPlane(), config),
      );
      await controller.start();
      const victim = await Victim.beside(controller);
      await victim.change();
      for (const { attack, tenant } of attackers) {
        // The creation of large objects takes the API server itself seconds.
        isResponsive(await victim.during(attack.launch(tenant, SCALE)), attack.tenant);
        isServed(await victim.during(Promise.resolve(), WATCHED_MS), attack.tenant);
        await controller.isUp();
      }
      const reports = await Promise.allSettled(
        attackers.map(({ attack, tenant }) => attack.isReported?.(tenant, SCALE)),
      );
      assert.deepEqual(
        reports.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : [])),
        [],
      );
      await controller.stop();
      await controller.start();
      isServed(await victim.during(Promise.resolve(), WATCHED_MS), "all objects, after a restart", STARTED_WITHIN_MS);
      await controller.isUp(2);
    });
  }
});
