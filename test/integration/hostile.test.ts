/** A tenant who makes as many bad bindings as he can: they fail, and those of others are written as if there were none. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { ConfinedController } from "../controller/confined.ts";
import { eventually } from "../controller/eventually.ts";
import { hostileBinding, hostileData, WAYS } from "../controller/hostile.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { requestsFor } from "../controller/requests.ts";
import { scaled } from "../controller/scale.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, harborTarget, type TestNamespace } from "../controller/test-namespace.ts";

const BAD = scaled(5, 2) * WAYS;
const ROTATIONS = scaled(15, 3);
/** What a try asks at most: the source, the target, the write that is refused, and the status. */
const REQUESTS_A_TRY = 4;
const TRIES_A_SECOND = 20;
/** How often bad ones are tried again while that is looked at. */
const TRIES = scaled(40, 3);

describe(`with ${BAD} hostile bindings beside it`, function () {
  this.timeout("4m");
  let controller: ConfinedController;
  let good: TestNamespace;
  let bad: TestNamespace;

  before(async () => {
    await stopSharedController();
    controller = new ConfinedController(controlPlane());
    await controller.start();
    good = await createNamespace({ controller: false });
    await good.boundHarbor();
    bad = await createNamespace({ controller: false });
    await bad.secret("hostile", hostileData(secretText("hostile")));
    const targets = ["hostile", ...Array.from({ length: 32 }, (_, n) => `many-${n}`)];
    await Promise.all(targets.map((name) => bad.harbor(name)));
    for (let from = 0; from < BAD; from += 13) {
      const some = Array.from({ length: 13 }, (_, n) => from + n);
      await Promise.all(some.map((n) => bad.bind(`bad-${n}`, hostileBinding(n).spec)));
    }
  });
  after(async () => {
    await bad?.api.delete(bad.path("inlay.dev/v1alpha1", "secretbindings"));
    await controller?.stop();
    assert.deepEqual(foundIn(controller.output), []);
  });

  const tries = async (): Promise<number> => {
    assert.deepEqual(foundIn(await controller.page("/metrics")), []);
    return controller.metric("workqueue_retries_total");
  };
  const untilTried = (times: number) => eventually(async () => assert.ok((await tries()) >= times), 60_000);

  /** Gives the good binding a new value, and waits until it is written. */
  async function rotate(): Promise<void> {
    const accessKeyID = secretText("access");
    await good.secret("bucket", { accessKeyID });
    await eventually(async () => assert.equal((await good.s3()).accesskey, accessKeyID), 5_000);
  }

  it("a good one is written while the controller finds out what is wrong with them", async () => {
    for (let n = 0; n < ROTATIONS; n++) await rotate();
  });

  it("each says what is wrong with it", async () => {
    const wrong = async () => {
      const { items } = await bad.api.get(bad.path("inlay.dev/v1alpha1", "secretbindings"));
      assert.deepEqual(foundIn(JSON.stringify(items)), []);
      const reasons = new Map<string, string>(
        items.map(({ metadata, status }: AnyObject) => [metadata.name, status?.conditions?.[0]?.reason]),
      );
      return Array.from({ length: BAD }, (_, n) => n).filter(
        (n) => reasons.get(`bad-${n}`) !== hostileBinding(n).reason,
      );
    };
    await eventually(async () => {
      const left = await wrong();
      const [first = 0] = left;
      const { status } = await bad.binding(`bad-${first}`);
      assert.deepEqual(left.length, 0, `${left.slice(0, 20)}, such as ${JSON.stringify(status)?.slice(0, 600)}`);
    }, 180_000);
  });

  it("a good one is written while they are tried again", async () => {
    const before = await tries();
    for (let n = 1; n <= ROTATIONS; n++) {
      await rotate();
      await untilTried(before + (n * TRIES) / ROTATIONS);
    }
    assert.equal((await good.binding("harbor-s3")).status.conditions[0].reason, "Synced");
  });

  it("the API server is asked no more for all of them than for a few", async () => {
    const [mark, since] = [await auditLog().mark(), performance.now()];
    await untilTried((await tries()) + TRIES);
    const { length } = await requestsFor(bad, mark);
    const seconds = (performance.now() - since) / 1_000;
    assert.ok(length <= seconds * TRIES_A_SECOND * REQUESTS_A_TRY, `${length} requests in ${seconds} s`);
  });

  it("the controller is the one that was started, is ready, and holds no more than it may", () => controller.isWell());

  it("a good one that is made now is written too", async () => {
    await good.harbor("late");
    await good.bind("late", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } }, { name: "late" })],
    });
    await good.until("late", "Synced", 10_000);
  });
});
