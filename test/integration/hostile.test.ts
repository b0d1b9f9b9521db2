/**
 * A tenant who creates as many bad bindings as possible. They fail, and the bindings of others are written as without them.
 */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { ConfinedController } from "../controller/confined.ts";
import { eventually } from "../controller/eventually.ts";
import { hostileBinding, hostileData, namedDeployment, namingBinding, WAYS } from "../controller/hostile.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { requestsFor, watchesFor } from "../controller/requests.ts";
import { scaled } from "../controller/scale.ts";
import { auditLog, stopSharedController } from "../controller/shared.ts";
import { createNamespace, harborTarget, type Rule, type TestNamespace } from "../controller/test-namespace.ts";

const BAD = scaled(5) * WAYS;
/** The number of bindings that name a thousand objects each. */
const NAMING = scaled(30, 3);
const ROTATIONS = scaled(15, 3);
/** The most requests of a try: the source, the target, the refused write, and the status. */
const REQUESTS_A_TRY = 4;
const TRIES_A_SECOND = 20;
/** How many retries of bad bindings the test waits for. */
const TRIES = scaled(40, 3);

describe(`with ${BAD} hostile bindings beside it`, function () {
  this.timeout("4m");
  let controller: ConfinedController;
  let good: TestNamespace;
  let bad: TestNamespace;

  before(async () => {
    await stopSharedController();
    controller = new ConfinedController(controlPlane(), "--leader-elect");
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
    return controller.metric("workqueue_retries_total", 'controller="secretbinding"');
  };
  const untilTried = (times: number) => eventually(async () => assert.ok((await tries()) >= times), 60_000);

  /** Gives the good binding a new value, and waits until it is written. */
  async function rotate(): Promise<void> {
    const accessKeyID = secretText("access");
    await good.secret("bucket", { accessKeyID });
    await eventually(async () => assert.equal((await good.s3()).accesskey, accessKeyID), 5_000);
  }

  it("a good one is written while the controller finds the errors of the others", async () => {
    for (let n = 0; n < ROTATIONS; n++) await rotate();
  });

  it("each reports its error", async () => {
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

  it("a good one is written while the others are retried", async () => {
    const before = await tries();
    for (let n = 1; n <= ROTATIONS; n++) {
      await rotate();
      await untilTried(before + (n * TRIES) / ROTATIONS);
    }
    assert.equal((await good.binding("harbor-s3")).status.conditions[0].reason, "Synced");
  });

  it("the API server gets no more requests for all of them than for a few", async () => {
    const [mark, since] = [await auditLog().mark(), performance.now()];
    await untilTried((await tries()) + TRIES);
    const { length } = await requestsFor(bad, mark);
    const seconds = (performance.now() - since) / 1_000;
    assert.ok(length <= seconds * TRIES_A_SECOND * REQUESTS_A_TRY, `${length} requests in ${seconds} s`);
  });

  describe("and others that name a thousand objects each", () => {
    const READ = ["list", "watch"];
    const workloads = (resourceNames?: string[]): Rule[] => [
      { apiGroups: ["apps"], resources: ["deployments"], verbs: READ, ...(resourceNames && { resourceNames }) },
    ];
    const names = Array.from({ length: NAMING }, (_, n) => `naming-${n}`);
    let team: TestNamespace;
    let mark: number;

    /** Waits until each binding has one of these reasons in a condition. */
    const untilReported = (type: string, reason: string | RegExp, which = names) =>
      eventually(async () => {
        const { items } = await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"));
        const chosen = (items as AnyObject[]).filter(({ metadata }) => which.includes(metadata.name));
        for (const { metadata, status } of chosen) {
          const condition = status?.conditions?.find((each: AnyObject) => each.type === type);
          assert.match(condition?.reason ?? "", new RegExp(reason), `${metadata.name}: ${condition?.message}`);
        }
        assert.equal(chosen.length, which.length);
      }, 60_000);
    const asked = async (...verbs: string[]) =>
      (await requestsFor(team, mark)).filter(({ verb, as }) => as !== undefined && verbs.includes(verb));

    before(async () => {
      team = await createNamespace({ controller: false, rules: [] });
      mark = await auditLog().mark();
      await Promise.all(names.map((name, n) => team.bind(name, namingBinding(n))));
    });
    after(() => team?.api.delete(team.path("inlay.dev/v1alpha1", "secretbindings")));

    it("which their account may not watch, none of the objects is read by name", async () => {
      await untilReported("Ready", "Forbidden");
      await untilReported("RolledOut", "Forbidden");
      for (let n = 0; n < ROTATIONS; n++) await rotate();
      assert.deepEqual(await asked("list", "watch"), []);
      const reviews = await asked("create");
      assert.ok(reviews.length > 0);
    });

    it("which their account may watch by name, some objects of each are watched and the others reported", async () => {
      const all = names.flatMap((_, n) => Array.from({ length: 1_024 }, (_, d) => namedDeployment(n, d)));
      await team.grant(workloads(all), { role: "by-name" });
      await untilReported("RolledOut", "TooManyWatches");
      await rotate();
      await eventually(async () => {
        const watched = await watchesFor(team, mark);
        assert.equal(watched.filter(({ open }) => open).length, names.length * 128);
      });
    });

    it("which their account may all watch, one stream watches them", async () => {
      await team.grant(workloads(), { role: "all" });
      await untilReported("RolledOut", "^(?!TooManyWatches)");
      await rotate();
    });

    it("the leader stays the leader", () => assert.doesNotMatch(controller.output, /lost the lease/));
  });

  it("the controller did not restart, is ready, and stays within its memory limit", () => controller.isWell());

  it("a new good one is written too", async () => {
    await good.harbor("late");
    await good.bind("late", {
      sources: [{ secret: { name: "bucket" } }],
      targets: [harborTarget({ accesskey: { from: { source: "bucket", key: "accessKeyID" } } }, { name: "late" })],
    });
    await good.until("late", "Synced", 10_000);
  });
});
