/**
 * A controller that is killed after it has restarted workloads and before the status records it. Each workload restarts
 * once.
 */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { scaled } from "../controller/scale.ts";
import { Rollout, THROUGH_MS } from "./rollout.ts";

const COUNT = scaled(40, 24);

describe(`a rollout of ${COUNT} Deployments without a limit`, function () {
  this.timeout("4m");
  let rollout: Rollout;

  before(async () => {
    rollout = await Rollout.start(COUNT);
    await rollout.limit(null);
  });
  after(() => rollout?.stop());

  const generations = async (): Promise<number[]> => {
    const { items } = await rollout.team.api.get(rollout.team.path("apps/v1", "deployments"));
    return items.map(({ metadata }: AnyObject) => metadata.generation);
  };

  /** Kills the controller when the first restart annotations are written and the status records none. */
  const killedInBurst = async () => {
    const before = await generations();
    const { status } = await rollout.team.binding("rolls");
    await rollout.rotate();
    await eventually(async () => assert.notDeepEqual(await generations(), before), THROUGH_MS);
    await rollout.kill();
    assert.deepEqual((await rollout.team.binding("rolls")).status.rollout, status.rollout);
    // Requests that were being sent have arrived.
    await rollout.shop.run(rollout.names);
  };

  it("restarts each Deployment once when the controller is killed before the status records a restart", async () => {
    const before = await rollout.shop.restarts();
    await killedInBurst();
    await rollout.newController();
    await rollout.through();
    await rollout.restartedOnce(before);
  });

  it("restarts again only the Deployments that restarted for a value that was reverted while no controller ran", async () => {
    const [before, former] = [await rollout.shop.restarts(), rollout.current];
    await killedInBurst();
    const restarted = await rollout.restartsSince(before);
    assert.ok([...restarted.values()].includes(1));
    // This is not counted as a rotation, because no controller read the value between.
    await rollout.setToken(former);
    await rollout.newController();
    await rollout.through();
    assert.deepEqual(
      await rollout.restartsSince(before),
      new Map([...restarted].map(([name, count]) => [name, 2 * count])),
    );
  });
});
