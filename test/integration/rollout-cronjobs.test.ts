/** Shows CronJobs that run a Job at once when they restart: by rollout.runCronJobs, and by Reloader's annotations. */
import assert from "node:assert/strict";
import { AUTO } from "../controller/annotated.ts";
import type { AnyObject } from "../controller/api.ts";
import type { ControllerProcess } from "../controller/controller.ts";
import { eventually } from "../controller/eventually.ts";
import { jobs, STAMP } from "../controller/jobs.ts";
import { secretText } from "../controller/leak-detector.ts";
import { allowCronJobs, installReloader, reloading, removeReloader, untilMade } from "../controller/reloader.ts";
import { rolloutBarrier } from "../controller/rollout-barrier.ts";
import { createNamespace, type Rule, type TestNamespace } from "../controller/test-namespace.ts";
import { deployment, rolloutRules, Workloads } from "../controller/workloads.ts";

const mayWatch: Rule = { apiGroups: ["batch"], resources: ["cronjobs"], verbs: ["get", "list", "watch"] };
const mayStamp: Rule = { apiGroups: ["batch"], resources: ["cronjobs"], verbs: ["patch"] };
const mayRun: Rule = { apiGroups: ["batch"], resources: ["jobs"], verbs: ["create"] };

const cronJobsIn = (team: TestNamespace, name = "") => `${team.path("batch/v1", "cronjobs")}${name && `/${name}`}`;

/** Its pods read the key `token` of the Secret `bucket`. It is not due before next year. */
function newCronJob(
  team: TestNamespace,
  name: string,
  spec: object = {},
  annotations: object = {},
): Promise<AnyObject> {
  const { template } = (deployment("app", { env: { bucket: ["token"] } }) as AnyObject).spec;
  const [{ readinessProbe: _, ...container }] = template.spec.containers;
  const pods = { ...template, spec: { containers: [container], restartPolicy: "Never" } };
  return team.api.create(cronJobsIn(team), {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: { name, annotations },
    spec: {
      schedule: "0 0 1 1 *",
      jobTemplate: { metadata: { labels: { made: "by-hand" } }, spec: { backoffLimit: 2, template: pods } },
      ...spec,
    },
  });
}

const stampOf = async (team: TestNamespace, name: string): Promise<string | undefined> =>
  (await team.api.get(cronJobsIn(team, name))).spec.jobTemplate.spec.template.metadata.annotations?.[
    "inlay.dev/rollout"
  ];

const jobsIn = async (team: TestNamespace): Promise<AnyObject[]> => (await team.api.get(jobs(team))).items;

describe("a CronJob that runs at once when it restarts", function () {
  this.timeout("3m");
  let controller: ControllerProcess;

  before(async () => {
    await installReloader();
    await allowCronJobs();
    controller = await reloading({ namespaces: ["team-*"], runCronJobs: true });
    await controller.start();
  });
  after(async () => {
    await controller?.stop();
    await removeReloader();
  });

  it("runs one Job for each restart, also after retries, and none while it is suspended", async () => {
    const team = await createNamespace({ rules: [...rolloutRules, mayWatch], controller: false });
    const shop = new Workloads(team);
    const rotate = () => team.secret("bucket", { token: secretText("token") });
    await rotate();
    const { metadata } = await newCronJob(team, "nightly");
    await team.bind("rolls", {
      sources: [{ secret: { name: "bucket" } }],
      rollout: { consumersOf: ["bucket"], kinds: ["CronJob"], runCronJobs: true },
    });
    await shop.rolledOut("rolls", 0);
    assert.deepEqual(await jobsIn(team), []);
    await rotate();
    const refused = await shop.until("rolls", "Forbidden");
    assert.match(JSON.stringify(refused.status.conditions), /may not create jobs.*--verb=create --resource=jobs/);
    assert.equal(await stampOf(team, "nightly"), undefined);
    // The Job is created, and the restart annotation is refused, so the controller retries.
    await team.grant([mayRun], { role: "jobs" });
    await eventually(async () => {
      const { status } = await shop.until("rolls", "Forbidden");
      assert.match(JSON.stringify(status.conditions), /may not patch cronjobs/);
    });
    await team.grant([mayStamp], { role: "stamps" });
    await shop.rolledOut("rolls", 1, 60_000);
    const [job, ...others] = await jobsIn(team);
    assert.deepEqual(others, []);
    assert.deepEqual(job?.metadata.ownerReferences, [
      { apiVersion: "batch/v1", kind: "CronJob", name: "nightly", uid: metadata.uid, controller: true },
    ]);
    assert.equal(job.metadata.annotations["cronjob.kubernetes.io/instantiate"], "manual");
    assert.deepEqual([job.metadata.labels["made"], job.spec.backoffLimit], ["by-hand", 2]);
    const stamp = job.spec.template.metadata.annotations["inlay.dev/rollout"];
    assert.match(stamp, STAMP);
    assert.equal(await stampOf(team, "nightly"), stamp);
    await rotate();
    await shop.rolledOut("rolls", 2);
    assert.equal((await jobsIn(team)).length, 2);
    await team.api.merge(cronJobsIn(team, "nightly"), { spec: { suspend: true } });
    await rotate();
    await shop.rolledOut("rolls", 3);
    assert.match((await stampOf(team, "nightly")) ?? "", /^3-/);
    await rolloutBarrier(team, controller);
    assert.equal((await jobsIn(team)).length, 2);
  });

  it("runs it by Reloader's annotations where the configuration enables it", async () => {
    const team = await createNamespace({ account: false, rules: [], controller: false });
    const shop = new Workloads(team);
    await team.secret("bucket", { token: secretText("token") });
    await newCronJob(team, "nightly", {}, AUTO);
    const [binding] = await untilMade(team, ["reloader-cronjob-nightly"]);
    assert.equal(binding?.spec.rollout.runCronJobs, true);
    await team.secret("bucket", { token: secretText("token") });
    await shop.rolledOut("reloader-cronjob-nightly", 1);
    const made = await jobsIn(team);
    assert.deepEqual(
      made.map(({ metadata }) => metadata.ownerReferences[0].name),
      ["nightly"],
    );
  });
});
