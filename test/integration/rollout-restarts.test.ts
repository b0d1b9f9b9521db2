/** A restart of the controller: workloads restart once for what changed in the meantime, and no workload restarts otherwise. */
import assert from "node:assert/strict";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { addSite, CLUSTER, newSite } from "../controller/fields.ts";
import { ended, jobOf, jobs, mayRecreate, names, newJob, STAMP } from "../controller/jobs.ts";
import { secretText } from "../controller/leak-detector.ts";
import { isStamped, newReplacedSet, podsOf, uidsOf } from "../controller/replaced.ts";
import { rolloutPulse } from "../controller/rollout-barrier.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const FIELD = 'metadata.annotations["kubectl.kubernetes.io/restartedAt"]';
const THROUGH_MS = 60_000;

const rotate = (team: TestNamespace, name = "bucket") => team.secret(name, { token: secretText("token") });
const bindingOf = (rollout: object, name = "bucket") => ({ sources: [{ secret: { name } }], rollout });

/** A team with a Deployment that a binding restarts. */
async function newCore(rollout: object = {}): Promise<{ team: TestNamespace; shop: Workloads }> {
  const team = await createNamespace({ rules: rolloutRules });
  const shop = new Workloads(team);
  await rotate(team);
  await shop.deploy({ core: { env: { bucket: ["token"] } } });
  await team.bind("rolls", bindingOf({ consumersOf: ["bucket"], ...rollout }));
  await shop.rolledOut("rolls", 0);
  return { team, shop };
}

/** The same, after one rollout, with a barrier. */
async function newSettled() {
  const { team, shop } = await newCore();
  const pulse = await rolloutPulse(team);
  await rotate(team);
  await shop.rolledOut("rolls", 1);
  return { team, shop, pulse, binding: await team.binding("rolls") };
}

/** The same, with a rollout that waits for its debounce. */
async function newDebounced() {
  const { team, shop } = await newCore({ debounce: "1h" });
  await rotate(team);
  const { status } = await shop.until("rolls", "Debounce");
  return { team, shop, pending: status.rollout.pending };
}

/** Creates a workload that has restarted by an annotation of its own, and another one for a barrier. */
async function newAnnotated() {
  const site = await newSite(CLUSTER, { instances: 3 }, FIELD, { value: "Time" });
  const beside = await addSite(site.team, "beside", CLUSTER, { instances: 1 }, FIELD);
  await beside.shop.rolledOut("beside", 0);
  await site.shop.rolledOut("main", 0);
  await site.rotate();
  await site.shop.rolledOut("main", 1);
  return { site, beside, resourceVersion: (await site.workload()).metadata.resourceVersion };
}

/** A team with completed Jobs, each with a binding of the same name that recreates it. */
async function newJobs(metadata: object, ...all: string[]): Promise<{ team: TestNamespace; shop: Workloads }> {
  const team = await createNamespace({ rules: [...rolloutRules, mayRecreate] });
  const shop = new Workloads(team);
  for (const name of all) {
    await rotate(team, name);
    await newJob(team, name, {}, metadata);
    await ended(team, name);
    await team.bind(name, bindingOf({ targets: [{ kind: "Job", name }] }, name));
    await shop.rolledOut(name, 0);
  }
  return { team, shop };
}

async function newRemade() {
  const { team, shop } = await newJobs({}, "migrate", "beside");
  await rotate(team, "migrate");
  await shop.rolledOut("migrate", 1, THROUGH_MS);
  return { team, shop, uid: (await jobOf(team)).metadata.uid };
}

/** A Job that is being deleted, to be recreated. */
async function newHeld() {
  const { team, shop } = await newJobs({ finalizers: ["example.com/hold"] }, "migrate");
  const { metadata } = await jobOf(team);
  await rotate(team, "migrate");
  const { status } = await shop.until("migrate", "Unavailable");
  assert.match(JSON.stringify(status.conditions), /Job .*migrate .*not deleted yet/);
  return { team, shop, uid: metadata.uid };
}

/** A StatefulSet whose pods are not replaced because of a PodDisruptionBudget. */
async function newBudgeted() {
  const { team, shop, rotate } = await newReplacedSet(2);
  const budgets = team.path("policy/v1", "poddisruptionbudgets");
  await team.api.create(budgets, {
    metadata: { name: "app" },
    spec: { maxUnavailable: 0, selector: { matchLabels: { app: "app" } } },
  });
  const budget = `${budgets}/app`;
  await eventually(async () => assert.ok((await team.api.get(budget)).status?.observedGeneration));
  const before = uidsOf(await podsOf(team));
  await rotate();
  await eventually(async () => {
    const said = JSON.stringify((await team.binding("rolls")).status.rollout.pending);
    assert.match(said, /PodDisruptionBudget/);
  });
  return { team, shop, budget, before };
}

describe("a restart of the controller", function () {
  this.timeout("3m");
  let changed: Awaited<ReturnType<typeof newCore>>;
  let settled: Awaited<ReturnType<typeof newSettled>>;
  let debounced: Awaited<ReturnType<typeof newDebounced>>;
  let annotated: Awaited<ReturnType<typeof newAnnotated>>;
  let remade: Awaited<ReturnType<typeof newRemade>>;
  let held: Awaited<ReturnType<typeof newHeld>>;
  let budgeted: Awaited<ReturnType<typeof newBudgeted>>;
  /** The position in the audit log at which the controller was stopped. */
  let mark: number;
  /** The state before the controller started again. */
  let left: { jobs: string[]; pods: string[] };

  before(async () => {
    [changed, settled, debounced, annotated, remade, held, budgeted] = await Promise.all([
      newCore(),
      newSettled(),
      newDebounced(),
      newAnnotated(),
      newRemade(),
      newHeld(),
      newBudgeted(),
    ]);
    const { controller } = changed.team;
    mark = await auditLog().mark();
    await controller.stop();
    await rotate(changed.team);
    left = { jobs: await names(held.team), pods: uidsOf(await podsOf(budgeted.team)) };
    await held.team.api.merge(jobs(held.team, "migrate"), { metadata: { finalizers: null } });
    await held.team.untilGone(jobs(held.team, "migrate"));
    await budgeted.team.api.delete(budgeted.budget);
    await controller.start();
  });

  it("restarts the consumers of a Secret that changed in the meantime, once", async () => {
    const { shop } = changed;
    await shop.rolledOut("rolls", 1, THROUGH_MS);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });

  it("restarts nothing else, and writes nothing", async () => {
    const { team, shop, pulse, binding } = settled;
    await pulse();
    const writes = (await auditLog().controllerWritesSince(mark)).filter(
      ({ namespace, name, verb }) =>
        namespace === team.namespace && !name.startsWith("pulse") && ["patch", "update"].includes(verb),
    );
    assert.deepEqual(writes, []);
    const { resourceVersion } = (await team.binding("rolls")).metadata;
    assert.equal(resourceVersion, binding.metadata.resourceVersion);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });

  it("does not end a debounce: changes before and after it are one rollout", async () => {
    const { team, shop, pending } = debounced;
    const again = await shop.until("rolls", "Debounce");
    assert.deepEqual(again.status.rollout.pending, pending);
    await rotate(team);
    await eventually(async () => {
      const { status } = await team.binding("rolls");
      assert.notEqual(status.rollout.pending.lastChangeTime, pending.lastChangeTime);
      assert.equal(status.rollout.pending.firstChangeTime, pending.firstChangeTime);
    });
    await team.rebind("rolls", { rollout: { debounce: null } });
    await shop.rolledOut("rolls", 1);
    assert.deepEqual(await shop.restarts(), { core: 1 });
  });

  it("does not repeat a restart by a field", async () => {
    const { site, beside, resourceVersion } = annotated;
    await beside.rotate();
    await beside.shop.rolledOut("beside", 1);
    await site.team.controller.idle();
    assert.equal((await site.workload()).metadata.resourceVersion, resourceVersion);
  });

  it("does not recreate a Job again", async () => {
    const { team, shop, uid } = remade;
    await rotate(team, "beside");
    await shop.rolledOut("beside", 1, THROUGH_MS);
    await team.controller.idle();
    assert.equal((await jobOf(team)).metadata.uid, uid);
  });

  it("does not lose a Job that is deleted and not yet recreated", async () => {
    const { team, shop, uid } = held;
    const [copy, ...others] = left.jobs.filter((name) => name !== "migrate");
    assert.match(copy ?? "", /^inlay-copy-/);
    assert.deepEqual(others, []);
    await eventually(async () => assert.deepEqual(await names(team), ["migrate"]), THROUGH_MS);
    await shop.rolledOut("migrate", 1, THROUGH_MS);
    const made = await jobOf(team);
    assert.notEqual(made.metadata.uid, uid);
    assert.match(made.spec.template.metadata.annotations["inlay.dev/rollout"], STAMP);
    const pods = (await team.api.get(team.path("v1", "pods"))).items;
    assert.ok(pods.every(({ metadata }: AnyObject) => metadata.labels["job-name"] === "migrate"));
  });

  it("replaces the remaining pods when a PodDisruptionBudget permits it", async () => {
    const { team, shop, before } = budgeted;
    assert.deepEqual(left.pods, before);
    await shop.rolledOut("rolls", 1, THROUGH_MS);
    assert.ok((await podsOf(team)).every(isStamped));
  });
});
