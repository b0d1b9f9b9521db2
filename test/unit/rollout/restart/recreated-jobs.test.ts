/** Jobs that were made anew, until streams show them, and what a crash cut off. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../../src/api/rollout.ts";
import type { ObjectRef } from "../../../../src/apimachinery/objects.ts";
import { JOBS } from "../../../../src/apimachinery/resources.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { Dependents } from "../../../../src/rollout/discover/dependents.ts";
import {
  finishCutOff,
  type RecreatedJob,
  recreated,
  withRecreated,
} from "../../../../src/rollout/restart/recreated-jobs.ts";
import { untilShown } from "../../../../src/rollout/status.ts";
import type { Dependent } from "../../../../src/rollout/types.ts";
import { copyName } from "../../../../src/workloads/job-copy.ts";
import { fakeClient } from "../../fakes.ts";
import { dependentOf, kubeObjectOf, rolloutSpecOf } from "../../objects.ts";

const dependent = (uid: string, step = 0) =>
  dependentOf({
    ref: { resource: JOBS, namespace: "shop", name: "migrate" },
    version: { uid },
    workload: { progress: { state: "Done", message: "complete" }, stamps: [] },
    step,
    uses: new Set(["bucket/token"]),
  });
const job = (uid: string) =>
  kubeObjectOf({ apiVersion: "batch/v1", kind: "Job", metadata: { name: "migrate", uid, resourceVersion: "2" } });
const of = (all: Dependent[]): Dependents => ({ all, used: new Set(), pending: false, problem: undefined });
const rollingOut = (uid: string): RolloutStatus => {
  const entry = {
    apiVersion: "batch/v1",
    kind: "Job",
    namespace: "shop",
    name: "migrate",
    uid,
    state: "Rolling",
  } as const;
  return {
    digestKeyID: "one",
    revision: 0,
    pending: { firstChangeTime: "", lastChangeTime: "", reason: "", message: "", workloads: [entry] },
  };
};
const never = () => assert.fail("nothing is written");
const uids = (all: readonly Dependent[]) => all.map(({ version }) => version.uid);

describe("a Job that was made anew", () => {
  const other = dependent("other", 1);
  const madeOf = (at = performance.now()) =>
    new Map<string, RecreatedJob>([["old", { ...recreated(dependent("old"), job("new"), "1-abc"), at }]]);

  it("takes the place of the former one until streams show it, and is on its way", () => {
    const made = madeOf();
    for (const shown of [[dependent("old"), other], [other]]) {
      const { all, used } = withRecreated(of(shown), made, undefined);
      assert.deepEqual([...used], ["bucket/token"]);
      assert.deepEqual(uids(all), ["new", "other"]);
      assert.deepEqual([all[0]?.workload.progress.state, all[0]?.workload.stamps], ["Rolling", ["1-abc"]]);
    }
    const shown = of([dependent("new"), other]);
    assert.deepEqual(withRecreated(shown, made, undefined).all, shown.all);
    assert.equal(made.size, 0);
    assert.equal(withRecreated(shown, made, undefined), shown);
  });

  it("has our stamp, also where somebody else has made it, until status has it", () => {
    const made = madeOf();
    const theirs = dependent("new");
    const shown = of([{ ...theirs, workload: { ...theirs.workload, stamps: ["2-def"] } }, other]);
    for (let i = 0; i < 2; i++) {
      const { all } = withRecreated(shown, made, rollingOut("old"));
      assert.deepEqual(uids(all), ["new", "other"]);
      assert.deepEqual(all[0]?.workload.stamps, ["2-def", "1-abc"]);
    }
    assert.deepEqual(withRecreated(shown, made, rollingOut("new")).all, shown.all);
    assert.equal(made.size, 0);
  });

  it("is not waited for where it has come and gone", () => {
    const made = madeOf(performance.now() - 31_000);
    assert.deepEqual(uids(withRecreated(of([other]), made, undefined).all), ["other"]);
    assert.equal(made.size, 0);
  });

  it("is looked for again when it is given up, if not before: nobody tells that it has gone", () => {
    const rolled = { status: undefined, workloads: 1, isDone: false };
    const made = madeOf();
    const { requeueAfterMs = 0 } = untilShown({ ...rolled, requeueAfterMs: 600_000 }, made);
    assert.ok(requeueAfterMs > 29_000 && requeueAfterMs <= 30_002, String(requeueAfterMs));
    assert.deepEqual(untilShown({ ...rolled, requeueAfterMs: 5 }, made), { ...rolled, requeueAfterMs: 5 });
    assert.equal(untilShown(rolled, madeOf(performance.now() - 31_000)), rolled);
    assert.equal(untilShown(rolled, new Map()), rolled);
  });
});

describe("a Job that a crash cut off", () => {
  type Entry = NonNullable<NonNullable<RolloutStatus["pending"]>["workloads"]>[number];
  const entry = { apiVersion: "batch/v1", kind: "Job", namespace: "shop", name: "migrate", uid: "old" };
  const waiting: Entry = { ...entry, state: "Waiting", stamp: "1-abc", copyUID: "copy" };

  /** The names that were asked for. */
  async function askedFor(workloads: Entry[], all: Dependent[] = [], isPending = false): Promise<string[]> {
    const asked: string[] = [];
    const client = fakeClient({
      get: async (_: unknown, { name }: ObjectRef) => {
        asked.push(name);
        throw new ApiError("it", 404, "NotFound");
      },
      make: never,
      delete: never,
    });
    const run = { identity: "", dependents: { ...of(all), pending: isPending }, spec: rolloutSpecOf() };
    const pending = { firstChangeTime: "", lastChangeTime: "", reason: "", message: "", workloads };
    assert.equal(await finishCutOff(client, run, { digestKeyID: "one", revision: 0, pending }), false);
    return asked;
  }

  it("is looked for by its copy where status says that it was about to be made, and it is not shown where all are", async () => {
    assert.deepEqual(await askedFor([waiting]), [copyName("old")]);
  });

  it("is not looked for where nothing was cut off: no other request is made", async () => {
    assert.deepEqual(await askedFor([waiting], [dependent("old")]), []);
    assert.deepEqual(await askedFor([waiting], [], true), []);
    assert.deepEqual(await askedFor([{ ...waiting, state: "Done" }]), []);
    assert.deepEqual(await askedFor([{ ...entry, state: "Waiting" }]), []);
    assert.deepEqual(await askedFor([{ ...entry, state: "Waiting", stamp: "1-abc" }]), []);
    assert.deepEqual(await askedFor([{ ...waiting, apiVersion: "apps/v1", kind: "Deployment" }]), []);
  });
});
