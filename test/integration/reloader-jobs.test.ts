/** Reloader's annotations on Jobs, where the installation says so: one is made anew for each change, once, and its binding stays. */
import assert from "node:assert/strict";
import { copyName } from "../../src/model/job-copy.ts";
import { AUTO, annotated, newShop, type Shop } from "../controller/annotated.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { foundIn } from "../controller/hunted.ts";
import { ended, jobOf, jobs, names, newJob, STAMP } from "../controller/jobs.ts";
import {
  allowJobs,
  installReloader,
  madeIn,
  reloading,
  removeReloader,
  untilMade,
  whileReloading,
} from "../controller/reloader.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { pause } from "../controller/team.ts";

const BINDING = "reloader-job-migrate";
const JOB = { annotations: AUTO };

async function newJobs(): Promise<Shop> {
  const shop = await newShop();
  await shop.rotate("bucket");
  return shop;
}

/** Which ones they are by now: the Job, and its binding. */
async function uids({ team }: Shop): Promise<{ job: string; binding: string; resourceVersion: string }> {
  const { uid, resourceVersion } = (await team.api.get(team.bindingPath(BINDING))).metadata;
  return { job: (await jobOf(team)).metadata.uid, binding: uid, resourceVersion };
}

/** A Deployment that is annotated later has its binding when all before has been looked at. */
async function lookedAt(shop: Shop, ...made: string[]): Promise<void> {
  await shop.make(annotated("next", { "secret.reloader.stakater.com/auto": "true" }));
  await untilMade(shop.team, [...made, "reloader-deployment-next"]);
}

describe("where Reloader's annotations are understood on Jobs,", function () {
  this.timeout("3m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    await allowJobs();
    controller = await reloading({ namespaces: ["team-*"], jobs: true });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("one is made anew for each change, once, by the same binding, in which nothing is written for that", async () => {
    const shop = await newJobs();
    const { team } = shop;
    await newJob(team, "migrate", {}, JOB);
    await ended(team);
    const [binding] = await untilMade(team, [BINDING]);
    assert.equal(binding?.metadata.ownerReferences, undefined);
    const mark = await auditLog().mark();
    const before = await uids(shop);
    for (const revision of [1, 2]) {
      const { job } = await uids(shop);
      await shop.rotate("bucket");
      await shop.rolledOut(BINDING, revision, 60_000);
      assert.notEqual((await uids(shop)).job, job);
      assert.match((await jobOf(team)).spec.template.metadata.annotations["inlay.dev/rollout"], STAMP);
      assert.deepEqual(await names(team), ["migrate"]);
    }
    const after = await uids(shop);
    assert.equal(after.binding, before.binding);
    await controller.stop();
    await controller.start();
    await lookedAt(shop, BINDING);
    assert.deepEqual(await uids(shop), after);
    await loggedUntilNow(team);
    const writes = (await auditLog().since(mark)).filter(
      ({ namespace, resource, verb, name }) =>
        namespace === team.namespace &&
        resource === "inlay.dev/secretbindings" &&
        ["create", "update", "delete"].includes(verb) &&
        name !== "reloader-deployment-next",
    );
    assert.deepEqual(
      writes.filter(({ verb, name }) => verb !== "create" || name !== "").map(({ verb, name }) => [verb, name]),
      [],
    );
  });

  it("what changes while it is being made anew, and no controller runs, is not lost, nor is the Job", async () => {
    const shop = await newJobs();
    const { team } = shop;
    const { metadata } = await newJob(team, "migrate", {}, { ...JOB, finalizers: ["example.com/hold"] });
    await ended(team);
    await untilMade(team, [BINDING]);
    const { binding } = await uids(shop);
    await shop.rotate("bucket");
    const [{ stamp: noted }] = (await shop.until(BINDING, "Unavailable")).status.rollout.pending.workloads;
    assert.match(noted, STAMP);
    await controller.stop();
    await shop.rotate("bucket");
    await team.api.merge(jobs(team, "migrate"), { metadata: { finalizers: null } });
    await team.untilGone(jobs(team, "migrate"));
    const [copy = "", ...others] = await names(team);
    assert.match(copy, /^inlay-copy-/);
    assert.deepEqual(others, []);
    await controller.start();
    await eventually(async () => assert.deepEqual(await names(team), ["migrate"]), 60_000);
    await shop.rolledOut(BINDING, 1, 60_000);
    const settled = await uids(shop);
    assert.notEqual(settled.job, metadata.uid);
    assert.equal(settled.binding, binding);
    const stamp = (await jobOf(team)).spec.template.metadata.annotations["inlay.dev/rollout"];
    assert.match(stamp, STAMP);
    // Of the same rollout, for other values.
    assert.notEqual(stamp, noted);
    assert.equal(stamp.split("-")[0], noted.split("-")[0]);
    await lookedAt(shop, BINDING);
    assert.equal((await uids(shop)).job, settled.job);
    assert.deepEqual(await names(team), ["migrate"]);
    await shop.rotate("bucket");
    await shop.rolledOut(BINDING, 2, 60_000);
    assert.equal((await uids(shop)).binding, binding);
  });

  it("one that somebody deletes and makes anew is new: what changed between the two makes it run no second time", async () => {
    const shop = await newJobs();
    const { team } = shop;
    await newJob(team, "migrate", {}, JOB);
    await ended(team);
    await untilMade(team, [BINDING]);
    await shop.rotate("bucket");
    await shop.rolledOut(BINDING, 1, 60_000);
    const before = await uids(shop);
    await controller.stop();
    const again = async () => {
      await team.api.delete(`${jobs(team, "migrate")}?propagationPolicy=Background`);
      await team.untilGone(jobs(team, "migrate"));
      await shop.rotate("bucket");
      return (await newJob(team, "migrate", {}, JOB)).metadata.uid;
    };
    const one = await again();
    await ended(team);
    await controller.start();
    await eventually(async () => assert.notEqual((await uids(shop)).binding, before.binding), 60_000);
    await untilMade(team, [BINDING]);
    assert.equal((await uids(shop)).job, one);
    const two = await again();
    await ended(team);
    await lookedAt(shop, BINDING);
    assert.equal((await uids(shop)).job, two);
    await shop.rotate("bucket");
    await shop.rolledOut(BINDING, 1, 60_000);
    assert.notEqual((await uids(shop)).job, two);
  });

  it("one that goes takes its binding along, and there is none for one of a CronJob, a copy, or one that says nothing", async () => {
    const shop = await newJobs();
    const { team } = shop;
    const first = await newJob(team, "migrate", {}, JOB);
    const { metadata } = await team.api.create(team.path("batch/v1", "cronjobs"), {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "nightly" },
      spec: { schedule: "0 0 1 1 *", suspend: true, jobTemplate: { spec: { template: first.spec.template } } },
    });
    const owner = { apiVersion: "batch/v1", kind: "CronJob", name: "nightly", uid: metadata.uid, controller: true };
    const nightly = await newJob(team, "nightly-1", {}, { ...JOB, ownerReferences: [owner] });
    const silent = await newJob(team, "silent");
    for (const name of ["migrate", "nightly-1", "silent"]) await ended(team, name);
    await untilMade(team, [BINDING]);
    await shop.rotate("bucket");
    await shop.rolledOut(BINDING, 1, 60_000);
    const uidOf = async (name: string) => (await jobOf(team, name)).metadata.uid;
    assert.deepEqual([await uidOf("nightly-1"), await uidOf("silent")], [nightly.metadata.uid, silent.metadata.uid]);
    await ended(team);
    await team.api.merge(jobs(team, "migrate"), { spec: { ttlSecondsAfterFinished: 0 } });
    await team.untilGone(jobs(team, "migrate"));
    await untilMade(team, []);
  });

  it("who may make Jobs and not bindings gains nothing by what looks like a copy", async () => {
    const shop = await newJobs();
    const { team } = shop;
    const original = { name: "migrate", uid: "forged", resourceVersion: "1", metadata: JOB, spec: {} };
    const forged = await newJob(
      team,
      copyName("forged"),
      { suspend: true },
      { annotations: { ...AUTO, "inlay.dev/copy-of": JSON.stringify(original) } },
    );
    // There is a binding for the Job that it says it stands for, and nothing that could be made of it.
    await lookedAt(shop, BINDING);
    await shop.rotate("bucket");
    await shop.rotate("one");
    await shop.rolledOut("reloader-deployment-next", 1, 60_000);
    assert.deepEqual(await names(team), [forged.metadata.name]);
    assert.equal((await jobOf(team, forged.metadata.name)).metadata.uid, forged.metadata.uid);
  });
});

describe("where Reloader's annotations are understood, and not on Jobs,", function () {
  this.timeout("2m");

  it("none is made anew, none is asked for, and the bindings that were made go", async () => {
    const shop = await newJobs();
    const { team } = shop;
    const { metadata } = await newJob(team, "migrate", {}, JOB);
    await newJob(team, "silent");
    for (const name of ["migrate", "silent"]) await ended(team, name);
    await installReloader(team.namespace);
    await allowJobs();
    const [on, off] = [
      // That all workloads restart which do not say no is not said of Jobs.
      await reloading({ namespaces: [team.namespace], jobs: true, autoReloadAll: true }),
      await reloading({ namespaces: [team.namespace] }),
    ];
    try {
      await on.start();
      await untilMade(team, [BINDING]);
      await on.stop();
      await shop.rotate("bucket");
      await off.start();
      await untilMade(team, []);
      await lookedAt(shop);
      await shop.restartedBy(() => shop.rotate("one"), ["next"], ["reloader-deployment-next"]);
      assert.equal((await jobOf(team)).metadata.uid, metadata.uid);
    } finally {
      await on.stop();
      await off.stop();
      await removeReloader();
    }
  });

  it("nor where its role is not bound, which the log tells", async () => {
    const shop = await newJobs();
    const { team } = shop;
    await whileReloading([team.namespace], { jobs: true }, async (controller) => {
      await controller.start();
      await newJob(team, "migrate", {}, JOB);
      await eventually(() => assert.match(controller.output, /jobs\.batch.*can't be read; apply deploy/));
      await pause(500);
      assert.deepEqual(await madeIn(team), []);
    });
  });
});
