/** Shows Reloader's annotations on workloads of every kind, with Jobs, and for SecretProviderClasses. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../src/apimachinery/objects.ts";
import { copyName } from "../../src/workloads/jobs.ts";
import { AUTO, annotated, named, newShop, type Shop, warningsOn } from "../controller/annotated.ts";
import { CLASS_AUTO, mounting, newStore, sourcesOf } from "../controller/annotated-classes.ts";
import { BINDING, JOB, newJobShop, uidsIn } from "../controller/annotated-jobs.ts";
import type { AnyObject } from "../controller/api.ts";
import { installRollouts, newRollout, removeRollouts, rolloutsPath } from "../controller/argo.ts";
import { classesPath, installClasses, newClass, secretObjects } from "../controller/classes.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { ended, forgeCopy, jobOf, jobs, names, newJob, STAMP } from "../controller/jobs.ts";
import { foundIn } from "../controller/leak-detector.ts";
import { refuse } from "../controller/refusing.ts";
import {
  allowJobs,
  installReloader,
  madeIn,
  RELOADER,
  reloading,
  removeReloader,
  untilMade,
} from "../controller/reloader.ts";
import { loggedUntilNow } from "../controller/requests.ts";
import { auditLog } from "../controller/shared.ts";

const listing = (names: string) => ({ "secretproviderclass.reloader.stakater.com/reload": names });

const merge = ({ team }: Shop, name: string, spec: object) => team.api.merge(`${classesPath(team)}/${name}`, { spec });

/** The paths of the kinds that restart by their pod template. */
const pathsIn = ({ team }: Shop): Record<string, string> => ({
  deployment: team.path("apps/v1", "deployments"),
  statefulset: team.path("apps/v1", "statefulsets"),
  daemonset: team.path("apps/v1", "daemonsets"),
  cronjob: team.path("batch/v1", "cronjobs"),
  rollout: rolloutsPath(team),
});

/** Creates a workload `app` of each kind, and a Rollout `by-time`. Returns the names of their bindings. */
async function makeAll(shop: Shop): Promise<string[]> {
  const { team } = shop;
  const { deployment, statefulset, daemonset, cronjob } = pathsIn(shop) as Record<string, string>;
  const { template } = annotated("app", {}).spec;
  const metadata = { name: "app", annotations: AUTO };
  const spec = { selector: { matchLabels: { app: "app" } }, template };
  const job = { template: { ...template, spec: { ...template.spec, restartPolicy: "Never" } } };
  await team.api.create(`${deployment}`, { metadata, spec });
  await team.api.create(`${statefulset}`, { metadata, spec: { ...spec, serviceName: "app" } });
  await team.api.create(`${daemonset}`, { metadata, spec });
  await team.api.create(`${cronjob}`, { metadata, spec: { schedule: "0 0 1 1 *", jobTemplate: { spec: job } } });
  await newRollout(team, "app", AUTO, template);
  await newRollout(team, "by-time", { ...AUTO, "reloader.stakater.com/rollout-strategy": "restart" }, template);
  return ["reloader-rollout-by-time", ...Object.keys(pathsIn(shop)).map((kind) => `reloader-${kind}-app`)];
}

/** Creates a workload of each kind, has their restart refused once, and then allows it. */
async function newRefused(): Promise<Shop> {
  const shop = await newShop();
  const { team } = shop;
  const made = await makeAll(shop);
  await eventually(async () => assert.equal((await madeIn(team)).length, made.length), 30_000);
  await eventually(async () => {
    for (const { metadata, status } of await madeIn(team)) assert.ok(status?.rollout, metadata.name);
  });
  const lift = await refuse(
    team,
    `refuses-${team.namespace}`,
    { operations: ["UPDATE"], apiGroups: ["apps", "batch", "argoproj.io"], resources: ["*"] },
    `request.userInfo.username != "${RELOADER}"`,
    () => team.api.as(RELOADER).dryRun.merge(shop.path("app"), { metadata: { annotations: { touched: "true" } } }),
  );
  await shop.rotate("one");
  for (const name of made)
    await eventually(async () => {
      const reasons = (await team.binding(name)).status?.conditions.map(({ reason }: AnyObject) => reason);
      assert.ok(reasons?.includes("Rejected"), `${name}: ${reasons}`);
    }, 30_000);
  await lift();
  return shop;
}

describe("with Reloader's annotations enabled", function () {
  this.timeout("3m");
  let controller: ControllerProcess;
  let refused: Shop;

  before(async () => {
    await installClasses();
    await installRollouts();
    await installReloader();
    await allowJobs();
    controller = await reloading({ namespaces: ["team-*"], jobs: true, recordOnWorkloads: true });
    await controller.start();
    refused = await newRefused();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
    await removeRollouts();
    assert.deepEqual(foundIn(controller.output), []);
  });

  it("a Job is recreated once for each change by the same binding, which is not written for that", async () => {
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

  it("a deleted Job deletes its binding, and Jobs of CronJobs, copies and Jobs without annotations have none", async () => {
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

  it("a user who may create Jobs and no bindings gains nothing by a forged copy", async () => {
    const shop = await newJobShop();
    const { team } = shop;
    const job = await newJob(team, "other", { suspend: true });
    await team.api.delete(`${jobs(team, "other")}?propagationPolicy=Background`);
    await team.untilGone(jobs(team, "other"));
    const original = { ...job, metadata: { name: "migrate", uid: "forged", resourceVersion: "1", ...JOB } };
    const uid = await forgeCopy(team, original as unknown as KubeObject, ({ metadata }) => {
      metadata.annotations = AUTO;
    });
    // There is a binding for the Job that the copy names, and no Job is created from the copy.
    await shop.make(annotated("next", { "secret.reloader.stakater.com/auto": "true" }));
    const reasonsOf = async (binding: string) => {
      const { status } = (await team.api.find(team.bindingPath(binding))) ?? {};
      return status?.conditions?.map(({ reason }: AnyObject) => reason);
    };
    await eventually(async () => {
      assert.deepEqual(await reasonsOf(BINDING), ["Synced", "WorkloadNotFound", "WorkloadNotFound"]);
      assert.deepEqual(await reasonsOf("reloader-deployment-next"), ["Synced", "RolledOut"]);
    });
    await shop.rotate("bucket");
    await shop.rotate("one");
    await shop.rolledOut("reloader-deployment-next", 1, 60_000);
    assert.deepEqual(await names(team), [copyName("forged")]);
    assert.equal((await jobOf(team, copyName("forged"))).metadata.uid, uid);
  });

  it("a workload restarts for the Secrets that its classes write: all that it mounts, or those that it lists", async () => {
    const shop = await newStore();
    await shop.make(
      mounting("auto", "store", CLASS_AUTO),
      mounting("all", "store", AUTO),
      mounting("listing", "store", listing("oth.*")),
      mounting("excluding", "store", {
        ...CLASS_AUTO,
        ...listing("other"),
        "secretproviderclasses.exclude.reloader.stakater.com/reload": "store",
      }),
      mounting("none", "store", { "secret.reloader.stakater.com/auto": "true" }),
    );
    const made = named("auto", "all", "listing", "excluding", "none");
    await untilMade(shop.team, made);
    await shop.restartedBy(() => shop.rotate("bucket"), ["auto", "all"], made);
    await shop.restartedBy(() => shop.rotate("beside"), ["listing", "excluding"], made);
    await shop.restartedBy(() => shop.rotate("one"), ["all", "none"], made);
  });

  it("a class that is created, changed or deleted changes the sources of its workloads, and restarts nothing", async () => {
    const shop = await newStore();
    const { team } = shop;
    const made = named("core");
    const until = async (names: string[]) => {
      await eventually(async () => assert.deepEqual(await sourcesOf(shop, "core"), names), 30_000);
      await untilMade(team, made);
    };
    await shop.make(mounting("core", "later", { ...CLASS_AUTO, "secret.reloader.stakater.com/reload": "one" }));
    await untilMade(team, made);
    await until(["one"]);
    await newClass(team, "later", { bucket: ["token"] });
    await until(["bucket", "one"]);
    await shop.restartedBy(() => shop.rotate("bucket"), ["core"], made);
    await merge(shop, "later", { secretObjects: secretObjects({ beside: ["token"] }) });
    await until(["beside", "one"]);
    await shop.restartedBy(() => shop.rotate("bucket"), [], made);
    await shop.restartedBy(() => shop.rotate("beside"), ["core"], made);
    await team.api.delete(`${classesPath(team)}/later`);
    await until(["one"]);
    await shop.restartedBy(() => shop.rotate("beside"), [], made);
  });

  it("a class that writes no Secret causes a warning on the workload that refers to it, until it writes one", async () => {
    const shop = await newStore();
    const { team } = shop;
    await merge(shop, "store", { secretObjects: null });
    await shop.make(mounting("core", "store", CLASS_AUTO), mounting("all", "store", AUTO));
    await untilMade(team, named("all"));
    await eventually(async () => {
      const [warning = "", ...others] = await warningsOn(team, "core");
      assert.match(warning, /SecretProviderClass store .*spec\.secretObjects.*reloader\.providerClasses/);
      assert.deepEqual(others, []);
    });
    await merge(shop, "store", { secretObjects: secretObjects({ bucket: ["token"] }) });
    await untilMade(team, named("all", "core"));
    await shop.restartedBy(() => shop.rotate("bucket"), ["all", "core"], named("all", "core"));
    assert.deepEqual(await warningsOn(team, "all"), []);
  });

  // This comes last because the controller retries a refused restart after half a minute.
  it("StatefulSets, DaemonSets and Argo Rollouts restart too, and a CronJob changes for its next Job without an extra one", async () => {
    const { team } = refused;
    for (const [kind, path] of Object.entries(pathsIn(refused)))
      await eventually(async () => {
        const { spec } = await team.api.get(`${path}/app`);
        const { annotations } = (spec.jobTemplate?.spec ?? spec).template.metadata;
        assert.match(annotations?.["inlay.dev/rollout"] ?? "", /^1-/, kind);
        const record = JSON.parse(annotations["reloader.stakater.com/last-reloaded-from"]);
        assert.deepEqual([record.type, record.name], ["SECRET", "one"], kind);
      }, 60_000);
    await eventually(async () => {
      const { spec } = await team.api.get(`${rolloutsPath(team)}/by-time`);
      assert.ok(Date.parse(spec.restartAt) > Date.now() - 60_000);
      assert.deepEqual(spec.template.metadata.annotations ?? {}, {});
    });
    assert.deepEqual((await team.api.get(team.path("batch/v1", "jobs"))).items, []);
  });
});
