/**
 * Shows that the configuration limits how many workloads roll out at once by all bindings together, and can suspend all rollouts.
 */
import assert from "node:assert/strict";
import { mkdtemp, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn, secretText } from "../controller/leak-detector.ts";
import { mostRolling, rollingIn } from "../controller/rolling.ts";
import { scaled } from "../controller/scale.ts";
import { stopSharedController } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const TEAMS = 3;
/** The number of bindings of each team, and the number of Secrets that change where not all do. */
const [EACH, SOME] = [scaled(50, 10), scaled(20, 4)];
const AT_ONCE = scaled(20, 6);
/** Longer than the period at which the controller reads its configuration. */
const SLOWLY_S = 6;
/** The time for a restart of all of them on a busy machine. */
const THROUGH_MS = 120_000;

describe(`${TEAMS * EACH} bindings with a Secret and a Deployment each, of which ${AT_ONCE} may roll out at a time,`, function () {
  this.timeout("5m");
  const names = Array.from({ length: EACH }, (_, at) => `app-${at}`);
  const teams: TestNamespace[] = [];
  const namespaces: string[] = [];
  let api: Api;
  let file: string;
  let controller: ControllerProcess;
  /** How often each Deployment must have restarted. */
  let rotations = 0;

  /** Replaces the file in one step, as the kubelet does. */
  async function configure(rollouts: string): Promise<void> {
    const text = `apiVersion: config.inlay.dev/v1alpha1\nkind: ControllerConfiguration\nrollouts: ${rollouts}\n`;
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  }

  const reconfigure = async (rollouts: string) => {
    const from = controller.output.length;
    await configure(rollouts);
    await eventually(() => assert.match(controller.output.slice(from), /applied the changed section rollouts/));
  };
  const everywhere = <T>(act: (team: TestNamespace) => Promise<T>) => Promise.all(teams.map(act));
  const rotate = (which = names) =>
    everywhere((team) => Promise.all(which.map((name) => team.secret(name, { token: secretText("token") }))));
  /** Sets how long a new pod of these Deployments has to be ready before they have rolled out. */
  const readyFor = (which: readonly string[], minReadySeconds: number) =>
    everywhere(async (team) => {
      const shop = new Workloads(team);
      await Promise.all(which.map((name) => team.api.merge(shop.path(name), { spec: { minReadySeconds } })));
    });
  const bindings = async (): Promise<AnyObject[]> =>
    (
      await everywhere(async (team) => (await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"))).items)
    ).flat();
  const restarts = async () =>
    (await everywhere(async (team) => Object.values(await new Workloads(team).restarts()))).flat();
  const restarted = async () => (await restarts()).filter((count) => count === rotations).length;
  const rolledOut = (count: number) =>
    eventually(async () => {
      const revisions = (await bindings()).filter(({ status }) => {
        const said = status?.conditions?.find(({ type }: AnyObject) => type === "RolledOut");
        return said?.status === "True" && status.rollout.revision === rotations;
      });
      assert.equal(revisions.length, count);
    }, THROUGH_MS);

  /** Changes the Secrets of all bindings that wait, and waits until each has recorded the change in its status. */
  async function rotateWaiting(): Promise<void> {
    const waiting = (await bindings()).filter(({ status }) => status.rollout.pending);
    assert.notEqual(waiting.length, 0);
    const changed = new Map(
      waiting.map(({ metadata, status }) => [metadata.uid, status.rollout.pending.lastChangeTime]),
    );
    const teamOf = new Map(teams.map((team) => [team.namespace, team]));
    await Promise.all(
      waiting.map(({ metadata: { namespace, name } }) =>
        teamOf.get(namespace)?.secret(name, { token: secretText("token") }),
      ),
    );
    await eventually(async () => {
      for (const { metadata, status } of await bindings()) {
        if (!changed.has(metadata.uid)) continue;
        assert.equal(status.rollout.pending.reason, "Suspended");
        assert.notEqual(status.rollout.pending.lastChangeTime, changed.get(metadata.uid));
      }
    });
  }

  /** Deletes rollouts of other tests that never finish: each uses a slot of the installation for an hour. */
  async function deleteStuck(): Promise<void> {
    const all = "/apis/inlay.dev/v1alpha1/secretbindings";
    await eventually(async () => {
      const stuck = (await api.get(all)).items.filter(({ status }: AnyObject) => status?.rollout?.pending);
      for (const { metadata } of stuck) {
        await api.delete(`/apis/inlay.dev/v1alpha1/namespaces/${metadata.namespace}/secretbindings/${metadata.name}`);
      }
      assert.equal(stuck.length, 0);
    }, THROUGH_MS);
  }

  /** Creates another team, with a Secret, a Deployment and a binding of each name. */
  async function hasty(all: readonly string[], timeout: string) {
    const team = await createNamespace({ controller: false, rules: rolloutRules });
    const shop = new Workloads(team);
    const rotate = (name: string) => team.secret(name, { token: secretText("token") });
    await Promise.all(all.map(rotate));
    await shop.deploy(Object.fromEntries(all.map((name) => [name, { env: { [name]: ["token"] } }])));
    for (const name of all)
      await team.bind(name, { sources: [{ secret: { name } }], rollout: { consumersOf: [name], timeout } });
    for (const name of all) await shop.rolledOut(name, 0);
    return { team, shop, rotate };
  }

  before(async () => {
    await stopSharedController();
    api = new Api(controlPlane());
    file = join(await mkdtemp(join(controlPlane().folder, "rollouts-")), "config.yaml");
    await configure("{ maxConcurrent: 1 }");
    controller = new ControllerProcess(controlPlane(), "--config", file);
    await controller.start();
    await deleteStuck();
    for (let at = 0; at < TEAMS; at++) teams.push(await createNamespace({ controller: false, rules: rolloutRules }));
    namespaces.push(...teams.map(({ namespace }) => namespace));
    await rotate();
    await everywhere((team) =>
      new Workloads(team).deploy(Object.fromEntries(names.map((name) => [name, { env: { [name]: ["token"] } }]))),
    );
    await everywhere((team) =>
      Promise.all(
        names.map((name) =>
          team.bind(name, {
            sources: [{ secret: { name } }],
            rollout: { consumersOf: [name], kinds: ["Deployment"] },
          }),
        ),
      ),
    );
    await rolledOut(TEAMS * EACH);
  });
  after(async () => {
    await controller?.stop();
    await everywhere((team) => team.api.delete(team.path("inlay.dev/v1alpha1", "secretbindings")));
    assert.deepEqual(foundIn(controller?.output ?? ""), []);
  });

  it("begin nothing while all rollouts are suspended, and continue with other limits afterwards", async () => {
    rotations++;
    const [some, others] = [names.slice(0, SOME), names.slice(SOME)];
    // The file is read every few seconds. The rollouts are slow, so that some are still under way by then.
    await readyFor(some, SLOWLY_S);
    await everywhere((team) => new Workloads(team).run(some));
    const before = await mostRolling(api, namespaces, async () => {
      await rotate(some);
      await eventually(async () => assert.ok((await restarted()) >= 1), THROUGH_MS);
      await reconfigure("{ suspend: true, maxConcurrent: 1 }");
    });
    assert.ok(before.all <= 1, `${before.all} at once`);
    await readyFor(some, 0);
    await eventually(async () => {
      const reasons = (await bindings()).map(({ status }) => status.rollout.pending?.reason);
      assert.deepEqual(new Set(reasons), new Set([undefined, "Suspended"]));
    }, THROUGH_MS);
    await eventually(async () => assert.deepEqual(await rollingIn(api, namespaces), new Map()), THROUGH_MS);
    const stopped = await restarted();
    await rotateWaiting();
    await controller.idle();
    assert.equal(await restarted(), stopped);

    const slow = await mostRolling(api, namespaces, async () => {
      await reconfigure("{ maxConcurrent: 2 }");
      await eventually(async () => assert.ok((await restarted()) >= stopped + 2), THROUGH_MS);
    });
    assert.ok(slow.all <= 2, `${slow.all} at once`);
    await reconfigure(`{ maxConcurrent: ${AT_ONCE} }`);
    const fast = await mostRolling(api, namespaces, async () => {
      await rotate(others);
      await rolledOut(TEAMS * EACH);
    });
    assert.ok(fast.all > 2 && fast.all <= AT_ONCE, `${fast.all} at once`);
    assert.equal(await restarted(), TEAMS * EACH);
  });

  it("never exceed the limit, and each Deployment restarts once", async () => {
    rotations++;
    const most = await mostRolling(api, namespaces, async () => {
      await rotate();
      await rolledOut(TEAMS * EACH);
    });
    assert.ok(most.all <= AT_ONCE, `${most.all} at once`);
    // A lower number would not show that the limit was reached.
    assert.ok(most.all >= AT_ONCE / 2, `${most.all} at once`);
    assert.deepEqual(new Set(await restarts()), new Set([rotations]));
  });

  it("respect the limit of one namespace, while another namespace continues", async () => {
    rotations++;
    const some = names.slice(0, SOME);
    await reconfigure("{ maxConcurrent: 5, maxConcurrentPerNamespace: 2 }");
    // So that rollouts overlap, however slowly the controller begins them.
    await readyFor(some, 3);
    await eventually(async () => assert.deepEqual(await rollingIn(api, namespaces), new Map()), THROUGH_MS);
    const most = await mostRolling(api, namespaces, async () => {
      await rotate(some);
      await rolledOut(TEAMS * some.length);
    });
    assert.ok(most.inOne <= 2, `${most.inOne} at once in one namespace`);
    assert.ok(most.all > 2 && most.all <= 5, `${most.all} at once`);
    assert.equal(await restarted(), TEAMS * some.length);
  });

  it("keep a slot for other namespaces when one wants all for 9000 hours, and free a slot that is used for an hour", async () => {
    const [theirs, ours] = [await hasty(["one", "two"], "9000h"), await hasty(["app"], "10m")];
    await reconfigure("{ maxConcurrent: 2 }");
    for (const name of ["one", "two"]) {
      // From now on, no node accepts its pods.
      const nowhere = { template: { spec: { nodeSelector: { nowhere: "true" } } } };
      await theirs.team.api.merge(theirs.shop.path(name), { spec: nowhere });
    }
    const [turn, next] = ["one", "two"];
    await theirs.rotate(turn);
    await theirs.shop.until(turn, "RollingOut");
    await theirs.rotate(next);
    await theirs.shop.until(next, "MaxConcurrent");
    await ours.rotate("app");
    await ours.shop.rolledOut("app", 1);

    await reconfigure("{ maxConcurrent: 1 }");
    await ours.rotate("app");
    await ours.shop.until("app", "MaxConcurrent");
    // From now on, the controller has nothing to write into status while the test does.
    const { workloads } = await eventually(async () => {
      const { pending } = (await theirs.team.binding(turn)).status.rollout;
      assert.match(pending.workloads[0].message, /old replica/);
      return pending;
    });
    const restartTime = new Date(Date.now() - 3_600_000).toISOString();
    const pending = { workloads: [{ ...workloads[0], restartTime }] };
    await theirs.team.api.merge(`${theirs.team.bindingPath(turn)}/status`, { status: { rollout: { pending } } });
    await ours.shop.rolledOut("app", 2);
    await theirs.shop.until(next, "RollingOut");
    for (const { team } of [theirs, ours]) await team.api.delete(team.path("inlay.dev/v1alpha1", "secretbindings"));
  });

  it("are not delayed by a binding that is broken or suspended during its rollout, also after a restart", async () => {
    const [team, name = ""] = [await createNamespace({ controller: false, rules: rolloutRules }), names[0]];
    const shop = new Workloads(team);
    for (const secret of ["stuck", name]) await team.secret(secret, { token: secretText("token") });
    await shop.deploy({ stuck: { env: { stuck: ["token"] } }, [name]: { env: { [name]: ["token"] } } });
    // No node accepts its pods once it restarts.
    await team.api.merge(shop.path("stuck"), { spec: { paused: true } });
    await team.api.merge(shop.path("stuck"), { spec: { template: { spec: { nodeSelector: { nowhere: "true" } } } } });
    for (const each of ["stuck", name]) {
      await team.bind(each, { sources: [{ secret: { name: each } }], rollout: { consumersOf: [each] } });
      await shop.rolledOut(each, 0);
    }
    await reconfigure("{ maxConcurrentPerNamespace: 1 }");
    await team.api.merge(shop.path("stuck"), { spec: { paused: false } });
    await team.secret("stuck", { token: secretText("token") });
    await shop.until("stuck", "RollingOut");
    await team.secret(name, { token: secretText("token") });
    const { status } = await shop.until(name, "MaxConcurrent");
    assert.match(status.conditions[1].message, /installation/);
    await team.rebind("stuck", { rollout: { consumersOf: ["misspelled"] } });
    await shop.rolledOut(name, 1);
    await team.rebind("stuck", { rollout: { consumersOf: ["stuck"] } });
    await shop.until("stuck", "RollingOut");
    await team.secret(name, { token: secretText("token") });
    await shop.until(name, "MaxConcurrent");
    await team.rebind("stuck", { suspend: true });
    await shop.rolledOut(name, 2);
    await controller.stop();
    await controller.start();
    await team.secret(name, { token: secretText("token") });
    await shop.rolledOut(name, 3);
    // The suspended rollout is still recorded.
    const { pending } = (await team.binding("stuck")).status.rollout;
    assert.deepEqual(
      pending.workloads.map((each: AnyObject) => each.name),
      ["stuck"],
    );
    await team.api.delete(team.path("inlay.dev/v1alpha1", "secretbindings"));
  });
});
