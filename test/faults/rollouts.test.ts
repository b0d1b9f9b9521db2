/** A controller, or its API server, that dies in the middle of a rollout: each workload restarts once, and none is forgotten. */
import assert from "node:assert/strict";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/hunted.ts";
import { mostRolling } from "../controller/rolling.ts";
import { scaled } from "../controller/scale.ts";
import { stopSharedController } from "../controller/shared.ts";
import { newTeam, type Team } from "../controller/team.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const COUNT = scaled(40, 24);
const MOST = Math.ceil(COUNT / 4);
/** When some have restarted and most have not, and when most have. */
const [SOME, MANY] = [Math.ceil(COUNT * 0.3), Math.ceil(COUNT * 0.6)];
/** For all of them to be restarted, on a machine with much else to do, after a lease has run out too. */
const THROUGH_MS = 120_000;

describe(`a rollout of ${COUNT} Deployments`, function () {
  this.timeout("4m");
  const names = Array.from({ length: COUNT }, (_, at) => `app-${at}`);
  const controllers: ControllerProcess[] = [];
  let team: Team;
  let shop: Workloads;
  let current = "";
  let rotations = 0;

  const newController = async (...args: string[]) => {
    const controller = new ControllerProcess(controlPlane(), ...args);
    controllers.push(controller);
    await controller.start();
    return controller;
  };
  const onlyController = async () => {
    await Promise.all(controllers.map((controller) => controller.stop()));
    return newController();
  };
  const rotate = async (token = secretText("token")) => {
    rotations++;
    current = token;
    await team.secret("bucket", { token });
  };
  const limit = async (maxConcurrent: number | null) => {
    await team.rebind("rolls", { rollout: { maxConcurrent } });
    await through();
  };
  const through = () => shop.rolledOut("rolls", rotations, THROUGH_MS);
  /** How often each was restarted since. */
  const restartsSince = async (before: Record<string, number>) => {
    const after = await shop.restarts();
    return new Map(names.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)]));
  };
  const restartedOnce = async (before: Record<string, number>) =>
    assert.deepEqual(await restartsSince(before), new Map(names.map((name) => [name, 1])));
  /** Waits until so many are restarted, and not all. */
  const inTheMiddle = (before: Record<string, number>, count: number) =>
    eventually(async () => {
      const restarted = [...(await restartsSince(before)).values()].filter((each) => each > 0).length;
      assert.ok(restarted >= count, `${restarted} restarted`);
      assert.ok(restarted < COUNT);
    }, THROUGH_MS);

  before(async () => {
    await stopSharedController();
    await newController();
    team = await newTeam({ controller: false, rules: rolloutRules });
    shop = new Workloads(team);
    current = secretText("token");
    await team.secret("bucket", { token: current });
    await shop.deploy(Object.fromEntries(names.map((name) => [name, { env: { bucket: ["token"] } }])));
    const rollout = { consumersOf: ["bucket"], kinds: ["Deployment"], maxConcurrent: MOST };
    await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout });
    await through();
  });
  after(async () => {
    await Promise.all(controllers.map((controller) => controller.stop()));
    await team.api.delete(team.path("inlay.dev/v1alpha1", "secretbindings"));
    for (const { output } of controllers) assert.deepEqual(foundIn(output), []);
  });

  it("goes on where it was when the controller is killed, as often as that happens", async () => {
    await onlyController();
    const before = await shop.restarts();
    const most = await mostRolling(team.api, [team.namespace], async () => {
      await rotate();
      for (const count of [1, SOME, MANY]) {
        await inTheMiddle(before, count);
        await controllers.at(-1)?.stop("SIGKILL");
        await newController();
      }
      await through();
    });
    assert.ok(most.all > 1 && most.all <= MOST, `${most.all} at once`);
    await restartedOnce(before);
  });

  it("goes on when the API server is killed", async () => {
    await onlyController();
    const { apiServer } = controlPlane();
    const before = await shop.restarts();
    const most = await mostRolling(team.api, [team.namespace], async () => {
      await rotate();
      await inTheMiddle(before, SOME);
      await apiServer.kill("SIGKILL");
      await apiServer.start();
      await through();
    });
    assert.ok(most.all <= MOST, `${most.all} at once`);
    await restartedOnce(before);
  });

  it("does not restart again what someone undoes meanwhile, until the next change", async () => {
    await onlyController();
    // So few at once that status tells of some that are done while others wait.
    await limit(4);
    const before = await shop.restarts();
    await rotate();
    const undone = await eventually(async () => {
      const { status } = await team.binding("rolls");
      const workloads: { name: string; state: string }[] = status.rollout.pending?.workloads ?? [];
      const done = workloads.find(({ state }) => state === "Done");
      assert.ok(done !== undefined && workloads.some(({ state }) => state === "Waiting"));
      return done.name;
    }, THROUGH_MS);
    const former = await shop.annotations(undone);
    await shop.undo(undone);
    const stamp = (await shop.annotations(undone))["inlay.dev/rollout"];
    assert.notEqual(stamp, former["inlay.dev/rollout"]);
    await through();
    await shop.run(names);
    const restarts = await restartsSince(before);
    assert.equal((await shop.annotations(undone))["inlay.dev/rollout"], stamp);
    assert.deepEqual(restarts, new Map(names.map((name) => [name, name === undone ? 2 : 1])));
    await rotate();
    await through();
    assert.notEqual((await shop.annotations(undone))["inlay.dev/rollout"], stamp);
    assert.deepEqual(await restartsSince(before), new Map(names.map((name) => [name, name === undone ? 3 : 2])));
    await limit(MOST);
  });

  it("is gone on with by the other replica when the leader is killed", async () => {
    await Promise.all(controllers.map((controller) => controller.stop()));
    const leader = await newController("--leader-elect");
    await eventually(() => assert.match(leader.output, /"msg":"leading"/), 30_000);
    await newController("--leader-elect");
    const before = await shop.restarts();
    const most = await mostRolling(team.api, [team.namespace], async () => {
      await rotate();
      await inTheMiddle(before, SOME);
      await leader.stop("SIGKILL");
      await through();
    });
    assert.ok(most.all <= MOST, `${most.all} at once`);
    await restartedOnce(before);
  });

  describe("without a limit", () => {
    before(async () => {
      await onlyController();
      await limit(null);
    });

    const generations = async (): Promise<number[]> => {
      const { items } = await team.api.get(team.path("apps/v1", "deployments"));
      return items.map(({ metadata }: AnyObject) => metadata.generation);
    };

    /** The controller dies when the first stamps are written and status knows of none. */
    const killedInBurst = async () => {
      const before = await generations();
      const { status } = await team.binding("rolls");
      await rotate();
      await eventually(async () => assert.notDeepEqual(await generations(), before), THROUGH_MS);
      await controllers.at(-1)?.stop("SIGKILL");
      assert.deepEqual((await team.binding("rolls")).status.rollout, status.rollout);
      // Whatever was on the wire has arrived.
      await shop.run(names);
    };

    it("restarts each once when the controller is killed before it has told of any", async () => {
      const before = await shop.restarts();
      await killedInBurst();
      await newController();
      await through();
      await restartedOnce(before);
    });

    it("restarts once more what was restarted for a value that went back while no controller ran, and nothing else", async () => {
      const [before, former] = [await shop.restarts(), current];
      await killedInBurst();
      const restarted = await restartsSince(before);
      assert.ok([...restarted.values()].includes(1));
      // It is no rotation of its own: nobody has seen the value between.
      await team.secret("bucket", { token: former });
      await newController();
      await through();
      assert.deepEqual(await restartsSince(before), new Map([...restarted].map(([name, count]) => [name, 2 * count])));
    });
  });
});
