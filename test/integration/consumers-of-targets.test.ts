/**
 * Workloads restart for the values that a binding writes into their namespaces. A namespace without permission delays only
 * its own workloads.
 */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { CONSENT, ORIGIN, restartRules, Spread } from "../controller/spread.ts";
import { Workloads } from "../controller/workloads.ts";

const consumers = { consumersOfTargets: true, kinds: ["Deployment"] };
const volume = (name: string, mount: object = {}) => ({
  pods: {
    volumes: [{ name: "files", secret: { secretName: name } }],
    containers: [{ name: "app", image: "app", volumeMounts: [{ name: "files", mountPath: "/files", ...mount }] }],
  },
});

describe("the consumers of the targets of a binding", function () {
  this.timeout("2m");

  it("restart in the namespaces of the clones, each for the keys that it reads there", async () => {
    const spread = await Spread.over(2);
    const [first, second] = spread.tenants;
    const { team } = spread;
    await Promise.all([
      first?.workloads.deploy({
        user: { env: { [ORIGIN]: ["user"] } },
        password: { env: { [ORIGIN]: ["password"] } },
        other: { env: { elsewhere: ["user"] } },
      }),
      second?.workloads.deploy({ all: { envFrom: [ORIGIN] } }),
    ]);
    await spread.bind(consumers);
    await new Workloads(team).rolledOut("spread", 0);
    await spread.rotate(["password"]);
    await new Workloads(team).rolledOut("spread", 1);
    assert.deepEqual(await first?.workloads.restarts(), { user: 0, password: 1, other: 0 });
    assert.deepEqual(await second?.workloads.restarts(), { all: 1 });
  });

  it("restart for a value whose key has another name there, and for no key that others write", async () => {
    const spread = await Spread.over(1);
    const [tenant] = spread.tenants;
    await tenant?.workloads.deploy({
      url: { env: { [ORIGIN]: ["url"] } },
      extra: { env: { [ORIGIN]: ["extra"] } },
    });
    const fields = [{ path: "data.url", template: `postgres://{{${ORIGIN}.user}}@db` }];
    await spread.bind(consumers, { targets: [spread.clones({ fields })] });
    const own = new Workloads(spread.team);
    await own.rolledOut("spread", 0);
    await spread.rotate(["password"]);
    await rolloutBarrier(spread.team);
    assert.deepEqual(await tenant?.workloads.restarts(), { url: 0, extra: 0 });
    await spread.rotate(["user"]);
    await own.rolledOut("spread", 1);
    assert.deepEqual(await tenant?.workloads.restarts(), { url: 1, extra: 0 });
  });

  it("restart only if they read it in the ways of consumersBy, and for the keys that they read so", async () => {
    const spread = await Spread.over(1);
    const [tenant] = spread.tenants;
    await spread.bind({ ...consumers, consumersOf: [ORIGIN], consumersBy: ["Env", "SubPath"] });
    const own = new Workloads(spread.team);
    await eventually(async () =>
      assert.ok(await tenant?.namespace.api.find(`${tenant.namespace.path("v1", "secrets")}/${ORIGIN}`)),
    );
    await tenant?.workloads.deploy({
      env: { env: { [ORIGIN]: ["user"] } },
      all: { envFrom: [ORIGIN] },
      volume: volume(ORIGIN),
      file: volume(ORIGIN, { subPath: "user" }),
      files: volume(ORIGIN, { subPathExpr: "$(FILE)" }),
      both: { env: { [ORIGIN]: ["user"] }, pods: { volumes: volume(ORIGIN).pods.volumes } },
    });
    await own.deploy({ here: { env: { [ORIGIN]: ["password"] } } });
    await own.rolledOut("spread", 0);
    await rolloutBarrier(spread.team);
    await spread.rotate(["password"]);
    await own.rolledOut("spread", 1);
    assert.deepEqual(await tenant?.workloads.restarts(), { env: 0, all: 0, volume: 0, file: 0, files: 1, both: 0 });
    await spread.rotate(["user"]);
    await own.rolledOut("spread", 2);
    assert.deepEqual(await tenant?.workloads.restarts(), { env: 1, all: 0, volume: 0, file: 1, files: 2, both: 1 });
    assert.deepEqual(await own.restarts(), { here: 1 });
  });

  it("restart in all namespaces except the one without permission, for which later steps wait", async () => {
    const spread = await Spread.over(3, (index) => index !== 1);
    const own = new Workloads(spread.team);
    const [first, closed, last] = spread.tenants;
    for (const { workloads } of spread.tenants) await workloads.deploy({ web: { envFrom: [ORIGIN] } });
    await own.deploy({ behind: { envFrom: [ORIGIN] } });
    const steps = [
      { name: "clones", ...consumers },
      { name: "behind", consumersOf: [ORIGIN], kinds: ["Deployment"] },
    ];
    await spread.bind({ steps });
    await own.until("spread", "Forbidden");
    await spread.rotate();
    await eventually(async () => {
      assert.deepEqual(await first?.workloads.restarts(), { web: 1 });
      assert.deepEqual(await last?.workloads.restarts(), { web: 1 });
    });
    await rolloutBarrier(spread.team);
    assert.deepEqual([await closed?.workloads.restarts(), await own.restarts()], [{ web: 0 }, { behind: 0 }]);
    const { message, reason } = await spread.condition();
    assert.equal(reason, "Forbidden");
    assert.match(message, new RegExp(`namespace ${closed?.namespace.namespace}\\b.*kubectl create role`));

    await spread.team.grant(restartRules, { namespace: closed?.namespace.namespace ?? "", role: CONSENT });
    await own.rolledOut("spread", 1);
    assert.deepEqual([await closed?.workloads.restarts(), await own.restarts()], [{ web: 1 }, { behind: 1 }]);
    assert.deepEqual([await first?.workloads.restarts(), await last?.workloads.restarts()], [{ web: 1 }, { web: 1 }]);
  });

  it("restart for changes before their namespaces granted permission, if no workload was seen to use them", async () => {
    const spread = await Spread.over(1, () => false);
    const own = new Workloads(spread.team);
    const [tenant] = spread.tenants;
    assert.ok(tenant);
    await tenant.workloads.deploy({ web: { env: { [ORIGIN]: ["password"] } } });
    await spread.bind(consumers);
    await own.until("spread", "Forbidden");
    await rolloutBarrier(spread.team);
    await spread.rotate(["password"]);
    await eventually(async () => assert.deepEqual(await spread.behind(), []));
    await rolloutBarrier(spread.team);
    await spread.team.grant(restartRules, { namespace: tenant.namespace.namespace, role: CONSENT });
    await own.until("spread", "RolledOut");
    assert.deepEqual(await tenant.workloads.restarts(), { web: 1 });
  });

  it("restart in sequence past a namespace that has withdrawn the permission", async () => {
    const spread = await Spread.over(3);
    const own = new Workloads(spread.team);
    const [withdrawn, ...others] = spread.tenants;
    for (const { workloads } of spread.tenants) await workloads.deploy({ web: { envFrom: [ORIGIN] } });
    await spread.bind({ ...consumers, maxConcurrent: 1 });
    await own.rolledOut("spread", 0);
    await withdrawn?.namespace.revoke(CONSENT);
    await spread.rotate();
    await eventually(async () => {
      for (const { workloads } of others) assert.deepEqual(await workloads.restarts(), { web: 1 });
    }, 60_000);
    assert.deepEqual(await withdrawn?.workloads.restarts(), { web: 0 });
    await eventually(async () => {
      const { reason, message } = await spread.condition();
      assert.equal(reason, "Forbidden", message);
      assert.match(message, new RegExp(`${withdrawn?.namespace.namespace}\\b.*kubectl create role`));
    });
  });
});
