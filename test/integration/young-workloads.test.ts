/** Shows that no change soon after the creation of a workload is missed, and that a younger workload does not restart for it. */
import assert from "node:assert/strict";
import { named, newShop, type Shop } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { secretText } from "../controller/leak-detector.ts";
import { installReloader, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { scaled } from "../controller/scale.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules, Workloads } from "../controller/workloads.ts";

const MAX_GAP_MS = 2_000;
const WITHIN_MS = 120_000;
const COUNT = scaled(150, 15);
const all = Array.from({ length: COUNT }, (_, at) => ({
  workload: `web-${at}`,
  secret: `secret-${at}`,
  gapMs: (MAX_GAP_MS * at) / COUNT,
  /** The others get a new label. */
  isChanged: at % 3 !== 2,
}));
const expected = all.map(({ isChanged }) => (isChanged ? 1 : 0));

const past = (time: number) => eventually(() => assert.ok(performance.now() >= time));

async function withSecrets(team: TestNamespace): Promise<void> {
  await Promise.all(all.map(({ secret }) => team.secret(secret, { token: secretText("token") })));
  // The times in managedFields are whole seconds.
  await past(performance.now() + 1_100);
}

/** Creates the workloads at the same time, and changes each Secret after its gap. */
async function createAndChange(team: TestNamespace, annotationsFor: (secret: string) => object): Promise<void> {
  const change = async ({ workload, secret, gapMs, isChanged }: (typeof all)[number]) => {
    const object = deployment(workload, { envFrom: [secret], replicas: 0 }) as AnyObject;
    object.metadata.annotations = annotationsFor(secret);
    await team.api.create(team.path("apps/v1", "deployments"), object);
    await past(performance.now() + gapMs);
    if (isChanged) await team.secret(secret, { token: secretText("token") });
    else {
      const path = `${team.path("v1", "secrets")}/${secret}`;
      await team.api.merge(path, { metadata: { labels: { touched: "true" } } }, "labels");
    }
  };
  await Promise.all(all.map(change));
}

/** How often each workload has restarted for its binding; a restart of 0 replicas ends at once. */
async function revisions(team: TestNamespace, bindingOf: (workload: string) => string): Promise<number[]> {
  const { items } = await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"));
  const found = new Map(items.map(({ metadata, status }: AnyObject) => [metadata.name, status?.rollout?.revision]));
  return all.map(({ workload }) => Number(found.get(bindingOf(workload)) ?? Number.NaN));
}

describe("a change soon after the creation of a workload", function () {
  this.timeout("5m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    controller = await reloading({ namespaces: ["team-*"] });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
  });

  it("restarts it once by an annotation, at every gap from 0 to 2 s, and a new label does not", async () => {
    const shop: Shop = await newShop();
    await withSecrets(shop.team);
    await createAndChange(shop.team, (secret) => ({ "secret.reloader.stakater.com/reload": secret }));
    const bindingOf = (workload: string) => named(workload)[0] as string;
    const restarted = async () => assert.deepEqual(await revisions(shop.team, bindingOf), expected);
    await eventually(restarted, WITHIN_MS);
    await shop.barrier();
    await restarted();
    await untilMade(
      shop.team,
      all.map(({ workload }) => bindingOf(workload)),
    );
  });

  it("restarts it once by a binding that waits for it, and a new label does not", async () => {
    const team = await createNamespace({ rules: rolloutRules, controller: false });
    await withSecrets(team);
    const bindingOf = (workload: string) => `rolls-${workload}`;
    for (const { workload, secret } of all)
      await team.bind(bindingOf(workload), {
        sources: [{ secret: { name: secret } }],
        rollout: { consumersOf: [secret] },
      });
    await eventually(
      async () =>
        assert.deepEqual(
          await revisions(team, bindingOf),
          all.map(() => 0),
        ),
      WITHIN_MS,
    );
    await createAndChange(team, () => ({}));
    const restarted = async () => assert.deepEqual(await revisions(team, bindingOf), expected);
    await eventually(restarted, WITHIN_MS);
    await rolloutBarrier(team, controller);
    await restarted();
  });

  it("restarts no workload that was recreated after the change while no controller ran", async () => {
    const team = await createNamespace({ rules: rolloutRules, controller: false });
    const shop = new Workloads(team);
    await team.secret("bucket", { token: secretText("token") });
    await shop.deploy({ kept: { envFrom: ["bucket"] }, recreated: { envFrom: ["bucket"] } });
    await team.bind("rolls", { sources: [{ secret: { name: "bucket" } }], rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    await controller.stop();
    await team.api.delete(shop.path("recreated"));
    await team.untilGone(shop.path("recreated"));
    await team.secret("bucket", { token: secretText("token") });
    await past(performance.now() + 1_100);
    await shop.deploy({ recreated: { envFrom: ["bucket"] } });
    await controller.start();
    await shop.rolledOut("rolls", 1, WITHIN_MS);
    assert.deepEqual(await shop.restarts(), { kept: 1, recreated: 0 });
  });
});
