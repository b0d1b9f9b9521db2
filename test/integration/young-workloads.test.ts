/** Shows that no change soon after the creation of a workload is missed, and that a younger workload does not restart for it. */
import assert from "node:assert/strict";
import { WORKLOAD_KINDS } from "../../src/workloads/workload.ts";
import { annotated, listed, named, newShop, type Shop } from "../controller/annotated.ts";
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
const COUNT = scaled(150, 16);
const KINDS = ["Deployment", "StatefulSet", "DaemonSet", "CronJob"] as const;
const all = Array.from({ length: COUNT }, (_, at) => ({
  kind: KINDS[at % KINDS.length] as (typeof KINDS)[number],
  workload: `web-${at}`,
  secret: `secret-${at}`,
  gapMs: (MAX_GAP_MS * at) / COUNT,
  /** The others get a new label. */
  isChanged: at % 3 !== 2,
}));
type Young = (typeof all)[number];
const expected = all.map(({ isChanged }) => (isChanged ? 1 : 0));
const STAMP = "inlay.dev/rollout";
const CRON_JOBS = { apiGroups: ["batch"], resources: ["cronjobs"], verbs: ["get", "list", "watch", "patch"] };

const past = (time: number) => eventually(() => assert.ok(performance.now() >= time));

async function withSecrets(team: TestNamespace): Promise<void> {
  await Promise.all(all.map(({ secret }) => team.secret(secret, { token: secretText("token") })));
  // The times in managedFields are whole seconds.
  await past(performance.now() + 1_100);
}

/** A workload without pods, so that a restart ends at once. */
function specOf({ kind, workload, secret }: Young): object {
  const { spec } = deployment(workload, { envFrom: [secret], replicas: 0 }) as AnyObject;
  const { replicas, selector, template } = spec;
  if (kind === "StatefulSet") return { ...spec, serviceName: workload };
  if (kind === "DaemonSet")
    return { selector, template: { ...template, spec: { ...template.spec, nodeSelector: { none: "true" } } } };
  const runs = { ...template, spec: { ...template.spec, restartPolicy: "Never" } };
  return kind === "CronJob"
    ? { schedule: "0 0 30 2 *", jobTemplate: { spec: { template: runs } } }
    : { ...spec, replicas };
}

/** Creates the workloads at the same time, and changes each Secret after its gap. */
async function createAndChange(team: TestNamespace, annotationsFor: (secret: string) => object): Promise<void> {
  const change = async (each: Young) => {
    const { kind, workload, secret, gapMs, isChanged } = each;
    const metadata = { name: workload, annotations: annotationsFor(secret) };
    const collection = team.path(WORKLOAD_KINDS[kind].apiVersion, `${kind.toLowerCase()}s`);
    await team.api.create(collection, { metadata, spec: specOf(each) });
    await past(performance.now() + gapMs);
    if (isChanged) await team.secret(secret, { token: secretText("token") });
    else {
      const path = `${team.path("v1", "secrets")}/${secret}`;
      await team.api.merge(path, { metadata: { labels: { touched: "true" } } }, "labels");
    }
  };
  await Promise.all(all.map(change));
}

/** How often each workload has restarted for its binding. */
async function revisions(team: TestNamespace, bindingOf: (each: Young) => string): Promise<number[]> {
  const { items } = await team.api.get(team.path("inlay.dev/v1alpha1", "secretbindings"));
  const found = new Map(items.map(({ metadata, status }: AnyObject) => [metadata.name, status?.rollout?.revision]));
  return all.map((each) => Number(found.get(bindingOf(each)) ?? Number.NaN));
}

describe("a change soon after the creation of a workload", function () {
  this.timeout("5m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    // Long enough that a request after another one arrives before the restart, also on a busy machine.
    controller = await reloading({ namespaces: ["team-*"], debounce: "2s" });
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
    const bindingOf = ({ kind, workload }: Young) => `reloader-${kind.toLowerCase()}-${workload}`;
    const restarted = async () => assert.deepEqual(await revisions(shop.team, bindingOf), expected);
    await eventually(restarted, WITHIN_MS);
    await shop.barrier();
    await restarted();
    await untilMade(shop.team, all.map(bindingOf));
  });

  it("restarts it once by a binding that waits for it, and a new label does not", async () => {
    const team = await createNamespace({ rules: [...rolloutRules, CRON_JOBS], controller: false });
    await withSecrets(team);
    const bindingOf = ({ workload }: Young) => `rolls-${workload}`;
    for (const [at, each] of all.entries()) {
      const { kind, workload, secret } = each;
      const found = at % 2 === 0 ? { consumersOf: [secret], kinds: [kind] } : { targets: [{ kind, name: workload }] };
      await team.bind(bindingOf(each), { sources: [{ secret: { name: secret } }], rollout: found });
    }
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

  it("restarts no workload that is recreated after the change, whether its rollout waits or not", async () => {
    const shop = await newShop();
    const names = [0, 1, 2, 3, 4].map((at) => `again-${at}`);
    const make = (name: string) => {
      const object = deployment(name, { envFrom: [name], replicas: 0 }) as AnyObject;
      object.metadata.annotations = listed(name);
      return shop.team.api.create(shop.team.path("apps/v1", "deployments"), object);
    };
    await Promise.all(names.map((name) => shop.rotate(name)));
    await Promise.all(names.map(make));
    const made = await untilMade(shop.team, named(...names));
    const recreate = async (name: string, at: number) => {
      await shop.rotate(name);
      await past(performance.now() + at * 200);
      await shop.team.api.delete(shop.path(name));
      await shop.team.untilGone(shop.path(name));
      await make(name);
    };
    await Promise.all(names.map(recreate));
    await eventually(async () => {
      const uids = (await untilMade(shop.team, named(...names))).map(({ metadata }) => metadata.uid);
      assert.ok(made.every(({ metadata }) => !uids.includes(metadata.uid)));
    }, WITHIN_MS);
    await shop.barrier();
    assert.deepEqual(
      await Promise.all(names.map((name) => shop.annotations(name))),
      names.map(() => ({})),
    );
  });

  it("restarts a workload whose value changes, unless its pod template changes after that and before the restart", async () => {
    const shop = await newShop();
    const names = Array.from({ length: 8 }, (_, at) => `both-${at}`);
    await Promise.all(names.map((name) => shop.rotate(name)));
    await shop.make(...names.map((name) => annotated(name, listed(name))));
    await untilMade(shop.team, named(...names));
    const own = (name: string) =>
      shop.team.api.merge(shop.path(name), { spec: { template: { metadata: { labels: { release: "2" } } } } });
    const scale = (name: string) => shop.team.api.merge(shop.path(name), { spec: { replicas: 2 } });
    await Promise.all(
      names.map(async (name, at) => {
        if (at % 4 === 3) {
          await own(name);
          // Its pods start before the value changes.
          await eventually(async () => assert.equal((await shop.restarts())[name], 1));
        }
        await shop.rotate(name);
        if (at % 4 < 2) await own(name);
        if (at % 4 === 2) await scale(name);
      }),
    );
    const bindings = named(...names);
    await eventually(async () => {
      for (const { status } of await untilMade(shop.team, bindings)) assert.equal(status.rollout.revision, 1);
    }, WITHIN_MS);
    await shop.barrier();
    const expected = names.map((name, at) => [name, at % 4 === 3 ? 2 : 1]);
    assert.deepEqual(await shop.restarts(), Object.fromEntries(expected));
    const stamped = await Promise.all(names.map(async (name) => STAMP in (await shop.annotations(name))));
    assert.deepEqual(
      stamped,
      names.map((_, at) => at % 4 >= 2),
    );
  });

  it("restarts a workload for a removed key, and for no source that its binding names after the change", async () => {
    const team = await createNamespace({ rules: rolloutRules, controller: false });
    const shop = new Workloads(team);
    const sources = ["bucket", "other"].map((name) => ({ secret: { name } }));
    for (const name of ["bucket", "other"])
      await team.secret(name, { token: secretText("token"), old: secretText("old") });
    await team.bind("rolls", { sources: [sources[0]], rollout: { consumersOf: ["bucket"] } });
    await shop.rolledOut("rolls", 0);
    await past(performance.now() + 1_100);
    await shop.deploy({ web: { envFrom: ["bucket", "other"] } });
    await rolloutBarrier(team, controller);
    // A removed key does not move the time of the data.
    await team.api.merge(`${team.path("v1", "secrets")}/bucket`, { data: { old: null } });
    await shop.rolledOut("rolls", 1);
    await team.secret("other", { token: secretText("token") });
    await team.rebind("rolls", { sources, rollout: { consumersOf: ["bucket", "other"] } });
    await shop.rolledOut("rolls", 1);
    await rolloutBarrier(team, controller);
    assert.deepEqual(await shop.restarts(), { web: 1 });
  });
});
