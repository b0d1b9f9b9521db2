/** A controller, or its API server, that is killed during a rollout. Each workload restarts once, and none is omitted. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";
import { mostRolling } from "../controller/rolling.ts";
import { scaled } from "../controller/scale.ts";
import { Rollout, THROUGH_MS } from "./rollout.ts";

const COUNT = scaled(40, 16);
/** The numbers of restarted Deployments at which the test kills the controller: some, and most. */
const [SOME, MANY] = [Math.ceil(COUNT * 0.3), Math.ceil(COUNT * 0.6)];
/** Longer than the controller needs to read a state on a busy machine. */
const SLOWLY_S = 3;

describe(`a rollout of ${COUNT} Deployments`, function () {
  this.timeout("4m");
  let rollout: Rollout;

  before(async () => {
    rollout = await Rollout.start(COUNT);
  });
  after(() => rollout?.stop());

  it("continues after each kill of the controller", async () => {
    await rollout.onlyController();
    const before = await rollout.shop.restarts();
    const most = await mostRolling(rollout.team.api, [rollout.team.namespace], async () => {
      await rollout.rotate();
      for (const count of [1, SOME, MANY]) {
        await rollout.inTheMiddle(before, count);
        await rollout.kill();
        await rollout.newController();
      }
      await rollout.through();
    });
    assert.ok(most.all > 1 && most.all <= rollout.most, `${most.all} at once`);
    await rollout.restartedOnce(before);
  });

  it("continues after a kill of the API server", async () => {
    await rollout.onlyController();
    const { apiServer } = controlPlane();
    const before = await rollout.shop.restarts();
    const most = await mostRolling(rollout.team.api, [rollout.team.namespace], async () => {
      await rollout.rotate();
      await rollout.inTheMiddle(before, SOME);
      await apiServer.kill("SIGKILL");
      await apiServer.start();
      await rollout.through();
    });
    assert.ok(most.all <= rollout.most, `${most.all} at once`);
    await rollout.restartedOnce(before);
  });

  it("does not restart a Deployment again that another user reverts meanwhile, until the next change", async () => {
    await rollout.onlyController();
    // Few roll out at once, so that the status shows some as done while others wait.
    await rollout.limit(4);
    await rollout.readyAfter(SLOWLY_S);
    const before = await rollout.shop.restarts();
    await rollout.rotate();
    const undone = await eventually(async () => {
      const { status } = await rollout.team.binding("rolls");
      const workloads: { name: string; state: string }[] = status.rollout.pending?.workloads ?? [];
      const done = workloads.find(({ state }) => state === "Done");
      assert.ok(done !== undefined && workloads.some(({ state }) => state === "Waiting"));
      return done.name;
    }, THROUGH_MS);
    const former = await rollout.shop.annotations(undone);
    await rollout.shop.undo(undone);
    await rollout.readyAfter(0);
    const stamp = (await rollout.shop.annotations(undone))["inlay.dev/rollout"];
    assert.notEqual(stamp, former["inlay.dev/rollout"]);
    await rollout.through();
    await rollout.shop.run(rollout.names);
    const restarts = await rollout.restartsSince(before);
    assert.equal((await rollout.shop.annotations(undone))["inlay.dev/rollout"], stamp);
    assert.deepEqual(restarts, new Map(rollout.names.map((name) => [name, name === undone ? 2 : 1])));
    await rollout.rotate();
    await rollout.through();
    assert.notEqual((await rollout.shop.annotations(undone))["inlay.dev/rollout"], stamp);
    assert.deepEqual(
      await rollout.restartsSince(before),
      new Map(rollout.names.map((name) => [name, name === undone ? 3 : 2])),
    );
    await rollout.limit(rollout.most);
  });

  it("is continued by the other replica when the leader is killed", async () => {
    await rollout.stopControllers();
    const leader = await rollout.newController("--leader-elect");
    await eventually(() => assert.match(leader.output, /"msg":"leading"/), 30_000);
    await rollout.newController("--leader-elect");
    const before = await rollout.shop.restarts();
    const most = await mostRolling(rollout.team.api, [rollout.team.namespace], async () => {
      await rollout.rotate();
      await rollout.inTheMiddle(before, SOME);
      await leader.stop("SIGKILL");
      await rollout.through();
    });
    assert.ok(most.all <= rollout.most, `${most.all} at once`);
    await rollout.restartedOnce(before);
  });
});
