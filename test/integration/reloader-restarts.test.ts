/**
 * Shows that workloads restart once for changes while the controller with Reloader's annotations is stopped, and that nothing
 * else happens.
 */
import assert from "node:assert/strict";
import { AUTO, annotated, listed, named, newShop, type Shop } from "../controller/annotated.ts";
import { BINDING, JOB, lookedAt, newJobShop, uidsIn } from "../controller/annotated-jobs.ts";
import { classVolume, installClasses, newClass } from "../controller/classes.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { ended, jobOf, jobs, names, newJob, STAMP } from "../controller/jobs.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { allowJobs, installReloader, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";

const THROUGH_MS = 60_000;
const CLASS_AUTO = { "secretproviderclass.reloader.stakater.com/auto": "true" };

/** Workloads that have not restarted. */
async function newSettled(): Promise<Shop> {
  const shop = await newShop();
  await shop.make(annotated("core", AUTO), annotated("still", listed("beside")));
  await untilMade(shop.team, named("core", "still"));
  return shop;
}

/** A Deployment whose pods mount a class, and that has restarted once. */
async function newMounting(): Promise<Shop> {
  const shop = await newShop();
  await shop.rotate("bucket");
  await newClass(shop.team, "store", { bucket: ["token"] });
  await shop.make(annotated("core", CLASS_AUTO, { spec: { volumes: [classVolume("store")] } }));
  await untilMade(shop.team, named("core"));
  await shop.restartedBy(() => shop.rotate("bucket"), ["core"], named("core"));
  return shop;
}

/** A completed Job, and its binding. */
async function newEnded(metadata: object = {}): Promise<{ shop: Shop; uid: string }> {
  const shop = await newJobShop();
  const { uid } = (await newJob(shop.team, "migrate", {}, { ...JOB, ...metadata })).metadata;
  await ended(shop.team);
  await untilMade(shop.team, [BINDING]);
  return { shop, uid };
}

/** A Job that has been recreated. */
async function newRemade() {
  const { shop } = await newEnded();
  await shop.rotate("bucket");
  await shop.rolledOut(BINDING, 1, THROUGH_MS);
  return { shop, uids: await uidsIn(shop) };
}

/** A Job that is being deleted, to be recreated. */
async function newHeld() {
  const { shop, uid } = await newEnded({ finalizers: ["example.com/hold"] });
  const { binding } = await uidsIn(shop);
  await shop.rotate("bucket");
  const [{ stamp }] = (await shop.until(BINDING, "Unavailable")).status.rollout.pending.workloads;
  assert.match(stamp, STAMP);
  return { shop, uid, binding, noted: stamp };
}

/** Deletes the Job as a user, changes its Secret, and creates the Job again. Returns its uid. */
async function replaceJob(shop: Shop): Promise<string> {
  const { team } = shop;
  await team.api.delete(`${jobs(team, "migrate")}?propagationPolicy=Background`);
  await team.untilGone(jobs(team, "migrate"));
  await shop.rotate("bucket");
  const { uid } = (await newJob(team, "migrate", {}, JOB)).metadata;
  await ended(team);
  return uid;
}

describe("a restart of a controller with Reloader's annotations enabled", function () {
  this.timeout("3m");
  let controller: ControllerProcess;
  /** Nothing changes for these while the controller is stopped. */
  let settled: Shop;
  let mounting: Shop;
  let remade: Awaited<ReturnType<typeof newRemade>>;
  /** The Secrets of these change while the controller is stopped. */
  let changed: Shop;
  let written: Shop;
  let held: Awaited<ReturnType<typeof newHeld>>;
  let replaced: Awaited<ReturnType<typeof newRemade>>;
  /** The position in the audit log at which the controller was stopped. */
  let mark: number;
  /** The state before the controller started again. */
  let left: { mounting: string; jobs: string[]; replacedBy: string };

  const versionOf = async ({ team }: Shop) =>
    (await team.api.get(team.bindingPath("reloader-deployment-core"))).metadata.resourceVersion;

  before(async () => {
    await installClasses();
    await installReloader();
    await allowJobs();
    controller = await reloading({ namespaces: ["team-*"], jobs: true });
    await controller.start();
    [settled, changed, mounting, written, remade, replaced, held] = await Promise.all([
      newSettled(),
      newSettled(),
      newMounting(),
      newMounting(),
      newRemade(),
      newRemade(),
      newHeld(),
    ]);
    await controller.stop();
    mark = await auditLog().mark();
    await Promise.all([changed.rotate("one"), written.rotate("bucket"), held.shop.rotate("bucket")]);
    await changed.rotate("one");
    const { team } = held.shop;
    await team.api.merge(jobs(team, "migrate"), { metadata: { finalizers: null } });
    await team.untilGone(jobs(team, "migrate"));
    left = {
      mounting: await versionOf(mounting),
      jobs: await names(team),
      replacedBy: await replaceJob(replaced.shop),
    };
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("restarts nothing, and writes nothing", async () => {
    const { team } = settled;
    // Its binding is created after the controller has processed everything that existed before.
    await settled.make(annotated("next", AUTO));
    await untilMade(team, named("core", "still", "next"));
    await controller.idle();
    await loggedUntilNow(team);
    const writes = (await auditLog().controllerWritesSince(mark)).filter(
      ({ namespace, resource, name }) =>
        namespace === team.namespace && !name.endsWith("-next") && !resource.startsWith("events"),
    );
    assert.deepEqual(
      writes
        .filter(({ verb, name }) => !(verb === "create" && name === ""))
        .map(({ verb, resource, name }) => [verb, resource, name]),
      [],
    );
    assert.deepEqual(await settled.restarts(), { core: 0, still: 0, next: 0 });
  });

  it("writes nothing for a workload whose pods mount a class", async () => {
    await lookedAt(mounting, ...named("core"));
    await controller.idle();
    assert.equal(await versionOf(mounting), left.mounting);
    assert.deepEqual(await mounting.restarts(), { core: 1, next: 0 });
  });

  it("does not recreate a Job again, and does not write its binding", async () => {
    const { shop, uids } = remade;
    await lookedAt(shop, BINDING);
    await controller.idle();
    assert.deepEqual(await uidsIn(shop), uids);
  });

  it("restarts once what changed in the meantime", async () => {
    await eventually(async () => assert.deepEqual(await changed.restarts(), { core: 1, still: 0 }), THROUGH_MS);
    await lookedAt(changed, ...named("core", "still"));
    assert.deepEqual(await changed.restarts(), { core: 1, still: 0, next: 0 });
  });

  it("restarts once for what classes wrote in the meantime", async () => {
    await eventually(async () => assert.deepEqual(await written.restarts(), { core: 2 }), THROUGH_MS);
    await lookedAt(written, ...named("core"));
    assert.deepEqual(await written.restarts(), { core: 2, next: 0 });
  });

  it("does not lose a Job that is deleted and not yet recreated, nor a change of its Secret in the meantime", async () => {
    const { shop, uid, binding, noted } = held;
    const { team } = shop;
    const [copy = "", ...others] = left.jobs;
    assert.match(copy, /^inlay-copy-/);
    assert.deepEqual(others, []);
    await eventually(async () => assert.deepEqual(await names(team), ["migrate"]), THROUGH_MS);
    await shop.rolledOut(BINDING, 1, THROUGH_MS);
    const now = await uidsIn(shop);
    assert.notEqual(now.job, uid);
    assert.equal(now.binding, binding);
    const stamp = (await jobOf(team)).spec.template.metadata.annotations["inlay.dev/rollout"];
    assert.match(stamp, STAMP);
    // It belongs to the same rollout, for other values.
    assert.notEqual(stamp, noted);
    assert.equal(stamp.split("-")[0], noted.split("-")[0]);
    await lookedAt(shop, BINDING);
    assert.equal((await uidsIn(shop)).job, now.job);
    assert.deepEqual(await names(team), ["migrate"]);
    await shop.rotate("bucket");
    await shop.rolledOut(BINDING, 2, THROUGH_MS);
    assert.equal((await uidsIn(shop)).binding, binding);
  });

  it("does not recreate a Job that a user deleted and created again, for a change of its Secret between the two", async () => {
    const { shop, uids } = replaced;
    const { team } = shop;
    await eventually(async () => assert.notEqual((await uidsIn(shop)).binding, uids.binding), THROUGH_MS);
    await untilMade(team, [BINDING]);
    assert.equal((await uidsIn(shop)).job, left.replacedBy);
    const again = await replaceJob(shop);
    await lookedAt(shop, BINDING);
    assert.equal((await uidsIn(shop)).job, again);
    await shop.rotate("bucket");
    await shop.rolledOut(BINDING, 1, THROUGH_MS);
    assert.notEqual((await uidsIn(shop)).job, again);
  });
});
