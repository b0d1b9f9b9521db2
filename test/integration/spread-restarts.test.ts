/** Shows the watches of one binding for many namespaces, and that a restarted controller processes the changes it missed. */
import assert from "node:assert/strict";
import { eventually } from "../controller/eventually.ts";
import { requestsFor, watchesFor } from "../controller/requests.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { scaled } from "../controller/scale.ts";
import { auditLog } from "../controller/shared.ts";
import { ORIGIN, Spread } from "../controller/spread.ts";
import { RESTARTED_WITHIN_MS, type TestNamespace } from "../controller/test-namespace.ts";
import { Workloads } from "../controller/workloads.ts";

const WRITES = ["create", "patch", "update", "delete"];

/** How often the team's account wrote each kind since a mark. */
async function writesSince(team: TestNamespace, mark: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { as, verb, resource, code } of await requestsFor(team, mark))
    if (as !== undefined && WRITES.includes(verb) && code < 300 && !resource.startsWith("authorization"))
      counts[`${verb} ${resource}`] = (counts[`${verb} ${resource}`] ?? 0) + 1;
  return counts;
}

describe("a binding for many namespaces", function () {
  this.timeout("5m");

  it("watches each kind by one stream in all namespaces if its account may, and a new namespace gets its clone", async () => {
    const spread = await Spread.everywhere(scaled(300, 3));
    const { team } = spread;
    const mark = await auditLog().mark();
    await spread.bind({ consumersOfTargets: true, kinds: ["Deployment"] });
    await new Workloads(team).until("spread", "RolledOut", 60_000);
    await eventually(async () => assert.deepEqual(await spread.behind(), []));
    const added = await spread.addTenant();
    await eventually(async () => assert.ok(await spread.clone(added)));
    const open = (await watchesFor(team, mark)).filter((watch) => watch.open && watch.as !== undefined);
    const others = open.filter(({ namespace }) => namespace !== "" && namespace !== team.namespace);
    assert.deepEqual(
      others.map(({ resource, namespace }) => `${resource} ${namespace}`),
      [],
    );
    assert.ok(open.length <= 10, `${open.length} streams`);
  });

  it("processes the changes that its controller missed, and writes nothing more", async () => {
    const spread = await Spread.everywhere(scaled(30, 3));
    const { team, tenants } = spread;
    const own = new Workloads(team);
    const count = tenants.length;
    await Promise.all(tenants.map(({ workloads }) => workloads.deploy({ web: { envFrom: [ORIGIN] } })));
    await spread.bind({ consumersOfTargets: true, kinds: ["Deployment"] });
    await own.rolledOut("spread", 0, 60_000);
    await spread.rotate();
    await own.rolledOut("spread", 1, 60_000);
    await rolloutBarrier(team);

    await team.controller.stop();
    await spread.rotate();
    const [robbed] = tenants;
    assert.ok(robbed);
    await team.api.delete(`${robbed.namespace.path("v1", "secrets")}/${ORIGIN}`);
    await spread.addTenant();
    let mark = await auditLog().mark();
    await team.controller.start();
    await own.rolledOut("spread", 2, RESTARTED_WITHIN_MS);
    await rolloutBarrier(team);
    assert.deepEqual(await spread.behind(), []);
    const restarts = await Promise.all(tenants.slice(0, count).map(({ workloads }) => workloads.restarts()));
    assert.deepEqual(
      restarts,
      Array.from({ length: count }, () => ({ web: 2 })),
    );
    const { "patch apps/deployments": stamps, ...writes } = await writesSince(team, mark);
    assert.deepEqual(writes, { "patch secrets": count - 1, "create secrets": 2 });
    // The barrier restarts a workload of its own.
    assert.ok(stamps !== undefined && stamps - count <= 2, `${stamps} restarts of ${count} workloads`);

    await team.controller.stop();
    mark = await auditLog().mark();
    await team.controller.start();
    await rolloutBarrier(team);
    const { "patch apps/deployments": ofBarrier = 0, ...none } = await writesSince(team, mark);
    assert.deepEqual(none, {});
    assert.ok(ofBarrier <= 2, `${ofBarrier} restarts`);
  });
});
