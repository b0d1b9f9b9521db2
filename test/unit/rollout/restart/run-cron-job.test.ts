/** Restarting a CronJob runs one Job at once for each restart. */
import assert from "node:assert/strict";
import type { JsonObject, KubeObject, ObjectRef } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { attempt } from "../../../../src/kube/access-error.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { runCronJob } from "../../../../src/rollout/restart/restart.ts";
import { fakeClient } from "../../fakes.ts";
import { dependentOf } from "../../objects.ts";
import { DEPLOYMENTS } from "../../resources.ts";

const ACCOUNT = serviceAccountIdentity("shop", "inlay");
const MARK = { annotation: "inlay.dev/rollout", stamp: "1-3fa9c1-09ab34de12" };
const CRON_JOBS = { ...DEPLOYMENTS, group: "batch", kind: "CronJob", plural: "cronjobs" };
const NIGHTLY: ObjectRef = { resource: CRON_JOBS, namespace: "shop", name: "nightly" };

const cronJob = (spec: object = {}): KubeObject => ({
  apiVersion: "batch/v1",
  kind: "CronJob",
  metadata: { name: "nightly", namespace: "shop", uid: "uid-1", resourceVersion: "7" },
  spec: {
    schedule: "0 3 * * *",
    jobTemplate: {
      metadata: { labels: { app: "nightly" }, annotations: { team: "shop" } },
      spec: { backoffLimit: 2, template: { metadata: { annotations: { kept: "yes" } }, spec: { containers: [] } } },
    },
    ...spec,
  },
});

/** Runs it that often. Returns the created Jobs, by name, and the result of the last try. */
async function run(stored: KubeObject, stamps = [MARK.stamp], refusal?: ApiError) {
  const made = new Map<string, JsonObject>();
  const client = fakeClient({
    get: async <T>() => structuredClone(stored) as T,
    createObject: async (_, { resource, name }, object) => {
      if (refusal !== undefined) throw refusal;
      if (made.has(name)) throw new ApiError("POST", 409, "AlreadyExists");
      made.set(name, object);
      return { apiVersion: "batch/v1", kind: resource.kind, metadata: { name, uid: name, resourceVersion: "1" } };
    },
  });
  const dependent = dependentOf({ ref: NIGHTLY, version: { uid: "uid-1" } });
  let result: "stale" | Problem | undefined;
  for (const stamp of stamps) result = await attempt(runCronJob(client, ACCOUNT, dependent, { ...MARK, stamp }));
  return { made, result };
}

describe("restarting a CronJob runs a Job at once", () => {
  it("as kubectl creates it, with the restart annotation on its pods", async () => {
    const { made, result } = await run(cronJob());
    assert.equal(result, undefined);
    const [[name, job] = ["", {}]] = made;
    assert.match(name, /^nightly-[0-9a-f]{10}$/);
    assert.deepEqual(job, {
      metadata: {
        labels: { app: "nightly" },
        annotations: { team: "shop", "cronjob.kubernetes.io/instantiate": "manual" },
        ownerReferences: [{ apiVersion: "batch/v1", kind: "CronJob", name: "nightly", uid: "uid-1", controller: true }],
      },
      spec: {
        backoffLimit: 2,
        template: {
          metadata: { annotations: { kept: "yes", "inlay.dev/rollout": MARK.stamp } },
          spec: { containers: [] },
        },
      },
    });
  });

  it("once for each restart, however often that is tried", async () => {
    const { made, result } = await run(cronJob(), [
      "1-3fa9c1-09ab34de12",
      "1-3fa9c1-09ab34de12",
      "2-3fa9c1-1111111111",
    ]);
    assert.deepEqual([made.size, result], [2, undefined]);
  });

  it("with a name that is short enough even for the longest name of a CronJob", async () => {
    const long = cronJob();
    long.metadata.name = "n".repeat(52);
    const { made } = await run(long);
    assert.deepEqual(
      [...made.keys()].map(({ length }) => length),
      [63],
    );
  });

  it("but not if it is suspended, or if another object has its name", async () => {
    const suspended = await run(cronJob({ suspend: true }));
    assert.deepEqual([suspended.made.size, suspended.result], [0, undefined]);
    const other = cronJob();
    other.metadata.uid = "uid-2";
    const replaced = await run(other);
    assert.deepEqual([replaced.made.size, replaced.result], [0, "stale"]);
  });

  it("or reports the command that permits it if the account may not", async () => {
    const { result } = await run(cronJob(), undefined, new ApiError("POST", 403, "Forbidden"));
    assert.ok(result instanceof Problem);
    assert.match(result.message, /may not create jobs.*--verb=create --resource=jobs/);
  });
});
