/** Shows that a completed Job that a binding names is deleted and recreated, and that no Job is lost. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../src/apimachinery/objects.ts";
import { copyName } from "../../src/workloads/jobs.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import {
  ended,
  forgeCopy,
  forgeJob,
  isComplete,
  jobOf,
  jobs,
  mayRecreate,
  names,
  newJob,
  STAMP,
} from "../controller/jobs.ts";
import { secretText } from "../controller/leak-detector.ts";
import { requestsFor } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";
import { createNamespace, type Rule } from "../controller/test-namespace.ts";
import { rolloutRules, Workloads } from "../controller/workloads.ts";

const mayList: Rule = { ...mayRecreate, verbs: ["get", "list", "watch"] };
const sources = [{ secret: { name: "bucket" } }];

/** Creates a team with a Secret, and a binding that restarts the Jobs that refer to it. */
async function newShop(rollout: object = { consumersOf: ["bucket"], kinds: ["Job"] }, rule: Rule = mayRecreate) {
  const team = await createNamespace({ rules: [...rolloutRules, rule] });
  const shop = new Workloads(team);
  const rotate = () => team.secret("bucket", { token: secretText("token") });
  await rotate();
  const bind = async () => {
    await team.bind("rolls", { sources, rollout });
    await shop.rolledOut("rolls", 0);
  };
  return { team, shop, rotate, bind, ended: (name?: string) => ended(team, name) };
}

/** Creates a Job that is being deleted and has a finalizer. The account may not create a Job until `goOn` is called. */
async function heldUp() {
  const { team, shop, rotate, bind, ended } = await newShop(undefined, mayList);
  await team.grant([mayRecreate], { role: "jobs" });
  await newJob(team, "migrate", {}, { finalizers: ["example.com/hold"] });
  await ended();
  await bind();
  const before = await jobOf(team);
  await rotate();
  await eventually(async () => {
    const { status } = await shop.until("rolls", "Unavailable");
    assert.match(JSON.stringify(status.conditions), /not deleted yet/);
  }, 60_000);
  await team.revoke("jobs");
  const goOn = () => team.grant([mayRecreate], { role: "jobs-again" });
  return { team, shop, before, goOn };
}

describe("a completed Job", function () {
  this.timeout("2m");

  it("is recreated unchanged once for each change, and runs to its end before other workloads restart", async () => {
    const steps = [
      { name: "migrate", targets: [{ kind: "Job", name: "migrate" }] },
      { name: "apps", consumersOf: ["bucket"] },
    ];
    const { team, shop, rotate, bind, ended } = await newShop({ steps });
    const before = await newJob(team, "migrate", { backoffLimit: 2 }, { annotations: { note: "kept" } });
    await shop.deploy({ web: { env: { bucket: ["token"] } } });
    await ended();
    await bind();
    await rotate();
    await shop.rolledOut("rolls", 1, 60_000);
    const after = await jobOf(team);
    assert.notEqual(after.metadata.uid, before.metadata.uid);
    assert.ok(isComplete(after));
    assert.equal(after.metadata.annotations.note, "kept");
    assert.deepEqual([after.metadata.labels["app"], after.spec.backoffLimit], ["migrate", 2]);
    assert.deepEqual([after.spec.suspend, after.spec.parallelism], [before.spec.suspend, before.spec.parallelism]);
    assert.match(after.spec.template.metadata.annotations["inlay.dev/rollout"], STAMP);
    assert.deepEqual(await names(team), ["migrate"]);
    const { metadata } = await team.api.get(shop.path("web"));
    assert.deepEqual(await shop.restarts(), { web: 1 });
    const stamped = metadata.managedFields.find(({ manager }: AnyObject) => manager === "inlay-rollout");
    assert.ok(Date.parse(stamped.time) >= Date.parse(after.status.completionTime));
    await rotate();
    await shop.rolledOut("rolls", 2, 60_000);
    assert.notEqual((await jobOf(team)).metadata.uid, after.metadata.uid);
    assert.deepEqual(await names(team), ["migrate"]);
  });

  it("is found by the references of its pods, and a Job of a CronJob is ignored", async () => {
    const { team, shop, rotate, bind, ended } = await newShop();
    const first = await newJob(team, "migrate");
    const { kind, metadata } = await team.api.create(team.path("batch/v1", "cronjobs"), {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "nightly" },
      spec: { schedule: "0 0 1 1 *", suspend: true, jobTemplate: { spec: { template: first.spec.template } } },
    });
    const owner = { apiVersion: "batch/v1", kind, name: metadata.name, uid: metadata.uid, controller: true };
    const nightly = await newJob(team, "nightly-1", {}, { ownerReferences: [owner] });
    for (const name of ["migrate", "nightly-1"]) await ended(name);
    await bind();
    await rotate();
    await shop.rolledOut("rolls", 1, 60_000);
    assert.notEqual((await jobOf(team)).metadata.uid, first.metadata.uid);
    assert.equal((await jobOf(team, "nightly-1")).metadata.uid, nightly.metadata.uid);
    assert.deepEqual(await names(team), ["migrate", "nightly-1"]);
  });

  it("is recreated, while a running Job is recreated only after it has ended", async () => {
    const { team, shop, rotate, bind } = await newShop();
    const { metadata } = await newJob(team, "migrate", { suspend: true });
    await bind();
    await rotate();
    const { status } = await shop.until("rolls", "RestartBlocked");
    assert.match(JSON.stringify(status.conditions), /migrate is running/);
    assert.equal((await jobOf(team)).metadata.uid, metadata.uid);
    await team.api.merge(jobs(team, "migrate"), { spec: { suspend: false } });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.notEqual((await jobOf(team)).metadata.uid, metadata.uid);
    assert.deepEqual(await names(team), ["migrate"]);
  });

  it("is not deleted where the API server would refuse its recreation, and no copy remains", async () => {
    const { team, shop, rotate, bind, ended } = await newShop();
    const { metadata } = await newJob(team, "migrate");
    await ended();
    await bind();
    const quota = await team.api.create(team.path("v1", "resourcequotas"), {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "jobs" },
      spec: { hard: { "count/jobs.batch": "2" } },
    });
    const path = `${team.path("v1", "resourcequotas")}/${quota.metadata.name}`;
    const used = async () => (await team.api.get(path)).status.used?.["count/jobs.batch"];
    await eventually(async () => assert.equal(await used(), "1"));
    await rotate();
    const { status } = await shop.until("rolls", "Rejected");
    assert.match(JSON.stringify(status.conditions), /migrate is unchanged/);
    assert.equal((await jobOf(team)).metadata.uid, metadata.uid);
    await eventually(async () => assert.deepEqual(await names(team), ["migrate"]));
    await team.api.merge(path, { spec: { hard: { "count/jobs.batch": "3" } } });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.notEqual((await jobOf(team)).metadata.uid, metadata.uid);
    assert.deepEqual(await names(team), ["migrate"]);
  });

  it("is recreated unchanged, whatever a user who may only create Jobs puts in the place of its copy", async () => {
    const { team, shop, rotate, bind, ended } = await newShop();
    await newJob(team, "migrate");
    await ended();
    await bind();
    const before = await jobOf(team);
    await forgeCopy(team, before as KubeObject, ({ spec }) => {
      const { annotations } = spec.template.metadata;
      const original = JSON.parse(annotations["inlay.dev/copy-of"]);
      original.metadata.finalizers = ["example.com/forged"];
      annotations["inlay.dev/copy-of"] = JSON.stringify(original);
      spec.template.spec.containers[0].image = "forged";
    });
    await rotate();
    await shop.rolledOut("rolls", 1, 60_000);
    const { metadata, spec } = await jobOf(team);
    assert.notEqual(metadata.uid, before.metadata.uid);
    assert.equal(metadata.finalizers, undefined);
    assert.deepEqual(spec.template.spec, before.spec.template.spec);
    assert.deepEqual(await names(team), ["migrate"]);
  });

  it("is not recreated from a forged copy once it is deleted, although status says that it is pending", async () => {
    const { team, shop, rotate, bind, ended } = await newShop(undefined, mayList);
    for (const name of ["beside", "migrate"]) {
      await newJob(team, name);
      await ended(name);
    }
    await bind();
    await rotate();
    const { status } = await shop.until("rolls", "Forbidden");
    const before = await jobOf(team);
    assert.ok(
      status.rollout.pending.workloads.some(({ uid, stamp }: AnyObject) => uid === before.metadata.uid && stamp),
    );
    await forgeCopy(team, before as KubeObject, ({ spec }) => {
      spec.template.spec.containers[0].image = "forged";
    });
    await team.api.delete(`${jobs(team, "migrate")}?propagationPolicy=Background`);
    await team.untilGone(jobs(team, "migrate"));
    // A reconcile that has read the Job before its deletion may recreate it unchanged, if the account may do so by then.
    await team.controller.idle();
    await team.grant([mayRecreate], { role: "jobs" });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.deepEqual(await names(team), ["beside", copyName(before.metadata.uid)]);
  });

  it("is recreated from an existing copy of its own, such as one before a crash", async () => {
    const { team, shop, rotate, bind, ended } = await newShop();
    await newJob(team, "migrate", {}, { finalizers: ["example.com/hold"] });
    await ended();
    await bind();
    const before = await jobOf(team);
    const copy = await forgeCopy(team, before as KubeObject, () => undefined);
    await rotate();
    const { status } = await shop.until("rolls", "Unavailable");
    assert.equal(status.rollout.pending.workloads[0].copyUID, copy);
    assert.equal((await jobOf(team, copyName(before.metadata.uid))).metadata.uid, copy);
    await team.api.merge(jobs(team, "migrate"), { metadata: { finalizers: null } });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.deepEqual(await names(team), ["migrate"]);
  });

  it("is not recreated from a copy that a user has changed: the condition says so, until the Job is created by hand", async () => {
    const { team, shop, rotate, bind, ended } = await newShop();
    await newJob(team, "migrate", {}, { finalizers: ["example.com/hold"] });
    await ended();
    await bind();
    const { uid } = (await jobOf(team)).metadata;
    await rotate();
    await shop.until("rolls", "Unavailable");
    const copy = jobs(team, copyName(uid));
    const { metadata, spec } = await team.api.get(copy);
    // The Job controller's own writes to it don't count.
    assert.equal(metadata.generation, 1);
    await team.grant([{ ...mayList, verbs: ["patch"] }], { account: "mallory", role: "mallory" });
    const mallory = team.api.as(`system:serviceaccount:${team.namespace}:mallory`);
    const said = JSON.parse(spec.template.metadata.annotations["inlay.dev/copy-of"]);
    said.spec = { manualSelector: true, selector: { matchLabels: { app: "victim" } } };
    said.metadata.finalizers = ["example.com/forged"];
    const annotations = { "inlay.dev/copy-of": JSON.stringify(said) };
    const nodeSelector = { forged: "yes" };
    await mallory.merge(copy, {
      metadata: { annotations },
      spec: { template: { metadata: { annotations }, spec: { nodeSelector } } },
    });
    // A reconcile that has read the copy before the change would recreate the original Job.
    const mark = await auditLog().mark();
    await eventually(async () => {
      const requests = await requestsFor(team, mark);
      assert.ok(requests.some(({ verb, name }) => verb === "get" && name === copyName(uid)));
    });
    await mallory.merge(jobs(team, "migrate"), { metadata: { finalizers: null } });
    const { status } = await shop.until("rolls", "Rejected");
    const conditions = JSON.stringify(status.conditions);
    assert.ok(
      conditions.includes("another user has changed its copy") && conditions.includes(metadata.name),
      conditions,
    );
    assert.deepEqual(await names(team), [metadata.name]);
    await newJob(team, "migrate");
    // The new Job already has the new value, so there is nothing to restart.
    await shop.rolledOut("rolls", 0, 60_000);
    assert.deepEqual(await names(team), ["migrate"]);
  });

  /** Deletes the Job, after which a user who may only create Jobs takes its name. */
  async function displaced() {
    const { team, shop, before, goOn } = await heldUp();
    await team.api.merge(jobs(team, "migrate"), { metadata: { finalizers: null } });
    await team.untilGone(jobs(team, "migrate"));
    const foreign = await forgeJob(team, before as KubeObject);
    await goOn();
    const { status } = await shop.until("rolls", "Rejected");
    const copy = copyName(before.metadata.uid);
    const { message } = status.conditions.find(({ type }: AnyObject) => type === "RolledOut");
    assert.match(message, /migrate is not recreated: .*another user/);
    assert.match(message, new RegExp(`Job ${team.namespace}/${copy}\\. Delete Job ${team.namespace}/migrate `));
    assert.equal((await jobOf(team)).metadata.uid, foreign);
    assert.deepEqual(await names(team), [copy, "migrate"]);
    return { team, shop, before, foreign, copy };
  }

  it("is kept in its copy while another user's Job has its name, and recreated when that Job is deleted", async () => {
    const { team, shop, before } = await displaced();
    await team.api.delete(`${jobs(team, "migrate")}?propagationPolicy=Background`);
    await shop.rolledOut("rolls", 1, 60_000);
    const { metadata, spec } = await jobOf(team);
    assert.deepEqual(spec.template.spec, before.spec.template.spec);
    assert.deepEqual([metadata.labels.app, spec.backoffLimit], ["migrate", before.spec.backoffLimit]);
    assert.deepEqual(await names(team), ["migrate"]);
  });

  it("is abandoned when its copy is deleted while another user's Job has its name, and that Job stays", async () => {
    const { team, shop, foreign, copy } = await displaced();
    await team.api.delete(`${jobs(team, copy)}?propagationPolicy=Background`);
    await shop.until("rolls", "RolledOut", 60_000);
    assert.equal((await jobOf(team)).metadata.uid, foreign);
    assert.deepEqual(await names(team), ["migrate"]);
    const reasons = [...(await team.events("rolls")), ...(await team.events("migrate"))].map(({ reason }) => reason);
    assert.ok(!reasons.includes("Restarted") && !reasons.includes("RolloutFailed"), reasons.join());
  });

  it("is reported as lost when a user has its copy removed while a finalizer delays its deletion", async () => {
    const { team, before } = await heldUp();
    const copy = jobs(team, copyName(before.metadata.uid));
    await team.grant([{ ...mayList, verbs: ["patch"] }], { account: "mallory", role: "mallory" });
    const mallory = team.api.as(`system:serviceaccount:${team.namespace}:mallory`);
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "none", uid: "11111111-1111-1111-1111-111111111111" };
    await mallory.merge(copy, { metadata: { ownerReferences: [owner] } });
    await team.untilGone(copy);
    await mallory.merge(jobs(team, "migrate"), { metadata: { finalizers: null } });
    await eventually(async () => {
      const failures = (await team.events("rolls")).filter(({ reason }) => reason === "RolloutFailed");
      assert.deepEqual(
        failures.map(({ type }) => type),
        ["Warning"],
      );
      assert.match(failures[0]?.note ?? "", /Job .*migrate .*Job .*inlay-copy-.*; create Job .*migrate again/);
    }, 30_000);
  });

  it("is not restarted where the account may not do that: the condition says what to allow", async () => {
    const { team, shop, rotate, bind, ended } = await newShop(undefined, mayList);
    const { metadata } = await newJob(team, "migrate");
    await ended();
    await bind();
    await rotate();
    const { status } = await shop.until("rolls", "Forbidden");
    assert.match(
      JSON.stringify(status.conditions),
      /kubectl create role .*--verb=create,delete --resource=jobs\.batch/,
    );
    assert.equal((await jobOf(team)).metadata.uid, metadata.uid);
    await team.grant([mayRecreate], { role: "jobs" });
    await shop.rolledOut("rolls", 1, 60_000);
    assert.notEqual((await jobOf(team)).metadata.uid, metadata.uid);
  });
});
