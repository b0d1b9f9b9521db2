/** Reloader's annotations on Jobs, where the installation says so: one is made anew for each change, once, and its binding stays. */
import assert from "node:assert/strict";
import { copyName } from "../../src/model/job-copy.ts";
import { AUTO } from "../controller/annotated.ts";
import { BINDING, JOB, lookedAt, newJobShop, uidsIn } from "../controller/annotated-jobs.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { foundIn } from "../controller/hunted.ts";
import { ended, jobOf, jobs, names, newJob, STAMP } from "../controller/jobs.ts";
import { allowJobs, installReloader, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";

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
    const shop = await newJobShop();
    const { team } = shop;
    await newJob(team, "migrate", {}, JOB);
    await ended(team);
    const [binding] = await untilMade(team, [BINDING]);
    assert.equal(binding?.metadata.ownerReferences, undefined);
    const mark = await auditLog().mark();
    const before = await uidsIn(shop);
    for (const revision of [1, 2]) {
      const { job } = await uidsIn(shop);
      await shop.rotate("bucket");
      await shop.rolledOut(BINDING, revision, 60_000);
      assert.notEqual((await uidsIn(shop)).job, job);
      assert.match((await jobOf(team)).spec.template.metadata.annotations["inlay.dev/rollout"], STAMP);
      assert.deepEqual(await names(team), ["migrate"]);
    }
    const after = await uidsIn(shop);
    assert.equal(after.binding, before.binding);
    await loggedUntilNow(team);
    const writes = (await auditLog().since(mark)).filter(
      ({ namespace, resource, verb }) =>
        namespace === team.namespace &&
        resource === "inlay.dev/secretbindings" &&
        ["create", "update", "delete"].includes(verb),
    );
    assert.deepEqual(writes, []);
  });

  it("one that goes takes its binding along, and there is none for one of a CronJob, a copy, or one that says nothing", async () => {
    const shop = await newJobShop();
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
    const shop = await newJobShop();
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
