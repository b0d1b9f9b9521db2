/** A controller that dies when it has restarted workloads and status does not say so yet: each restarts once all the same. */
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

  /** The controller dies when the first stamps are written and status knows of none. */
  const killedInBurst = async () => {
    const before = await generations();
    const { status } = await rollout.team.binding("rolls");
    await rollout.rotate();
    await eventually(async () => assert.notDeepEqual(await generations(), before), THROUGH_MS);
    await rollout.kill();
    assert.deepEqual((await rollout.team.binding("rolls")).status.rollout, status.rollout);
    // Whatever was on the wire has arrived.
    await rollout.shop.run(rollout.names);
  };

  it("restarts each once when the controller is killed before it has told of any", async () => {
    const before = await rollout.shop.restarts();
    await killedInBurst();
    await rollout.newController();
    await rollout.through();
    await rollout.restartedOnce(before);
  });

  it("restarts once more what was restarted for a value that went back while no controller ran, and nothing else", async () => {
    const [before, former] = [await rollout.shop.restarts(), rollout.current];
    await killedInBurst();
    const restarted = await rollout.restartsSince(before);
    assert.ok([...restarted.values()].includes(1));
    // It is no rotation of its own: nobody has seen the value between.
    await rollout.setToken(former);
    await rollout.newController();
    await rollout.through();
    assert.deepEqual(
      await rollout.restartsSince(before),
      new Map([...restarted].map(([name, count]) => [name, 2 * count])),
    );
  });
});
