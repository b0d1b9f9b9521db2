/** Recreated Jobs until watches show them, and recreations that a crash interrupted. */
import assert from "node:assert/strict";
import type { RolloutStatus } from "../../../../src/api/rollout.ts";
import type { KubeObject, ObjectRef } from "../../../../src/apimachinery/objects.ts";
import { Problem } from "../../../../src/apimachinery/problem.ts";
import { JOBS } from "../../../../src/apimachinery/resources.ts";
import { attempt } from "../../../../src/kube/access-error.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { Notification } from "../../../../src/notifications/text.ts";
import type { Dependents } from "../../../../src/rollout/discover/dependents.ts";
import {
  finishCutOff,
  type RecreatedJob,
  recreated,
  withRecreated,
} from "../../../../src/rollout/restart/recreate-job.ts";
import { untilShown } from "../../../../src/rollout/status.ts";
import type { Dependent } from "../../../../src/rollout/types.ts";
import { copyName, copyOf } from "../../../../src/workloads/jobs.ts";
import { fakeClient } from "../../fakes.ts";
import { bindingOf, dependentOf, kubeObjectOf, rolloutSpecOf } from "../../objects.ts";

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
const of = (all: Dependent[]): Dependents => ({
  all,
  used: new Set(),
  pending: false,
  unknown: [],
  missing: [],
  unread: [],
  problem: undefined,
});
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
const uids = (all: readonly Dependent[]) => all.map(({ version }) => version.uid);

describe("a recreated Job", () => {
  const other = dependent("other", 1);
  const madeOf = (at = performance.now()) =>
    new Map<string, RecreatedJob>([["old", { ...recreated(dependent("old"), job("new"), "1-abc"), at }]]);

  it("replaces the former one until watches show it, and is rolling out", () => {
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

  it("has our stamp, also if another client has created it, until the status has it", () => {
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

  it("is not waited for if it was created and deleted", () => {
    const made = madeOf(performance.now() - 31_000);
    assert.deepEqual(uids(withRecreated(of([other]), made, undefined).all), ["other"]);
    assert.equal(made.size, 0);
  });

  it("is looked for again when it is given up, because no watch shows its deletion", () => {
    const rolled = { status: undefined, workloads: 1, isDone: false };
    const made = madeOf();
    const { requeueAfterMs = 0 } = untilShown({ ...rolled, requeueAfterMs: 600_000 }, made);
    assert.ok(requeueAfterMs > 29_000 && requeueAfterMs <= 30_002, String(requeueAfterMs));
    assert.deepEqual(untilShown({ ...rolled, requeueAfterMs: 5 }, made), { ...rolled, requeueAfterMs: 5 });
    assert.equal(untilShown(rolled, madeOf(performance.now() - 31_000)), rolled);
    assert.equal(untilShown(rolled, new Map()), rolled);
  });
});

describe("a Job whose recreation a crash interrupted", () => {
  type Entry = NonNullable<NonNullable<RolloutStatus["pending"]>["workloads"]>[number];
  const entry = { apiVersion: "batch/v1", kind: "Job", namespace: "shop", name: "migrate", uid: "old" };
  interface Cluster {
    all?: Dependent[];
    isPending?: boolean;
    there?: Record<string, KubeObject>;
    settled?: Set<string>;
  }
  const waiting: Entry = { ...entry, state: "Waiting", stamp: "1-abc", copyUID: "copy" };

  /** The requested names, and what was recorded. `there` has what the API server has. */
  async function lookFor(workloads: Entry[], { all = [], isPending = false, there = {}, settled }: Cluster = {}) {
    const asked: string[] = [];
    const notes: string[] = [];
    const notified: string[] = [];
    const client = fakeClient({
      get: async (_: unknown, { name }: ObjectRef) => {
        asked.push(name);
        return there[name] ?? assert.fail(new ApiError("it", 404, "NotFound"));
      },
      createObject: async (_: unknown, { name }: ObjectRef) =>
        there[name] === undefined ? job("new") : assert.fail(new ApiError("it", 409, "AlreadyExists")),
      delete: async () => undefined,
    });
    const events = { record: (_: unknown, { note }: { note: string }) => void notes.push(note) };
    const notifier = { notify: ({ event, workload }: Notification) => void notified.push(`${event} ${workload.name}`) };
    const dependents = { ...of(all), pending: isPending };
    const run = { binding: bindingOf({}), identity: "", dependents, spec: rolloutSpecOf() };
    const pending = { firstChangeTime: "", lastChangeTime: "", reason: "", message: "", workloads };
    const before = { digestKeyID: "one", revision: 0, pending };
    const isOne = await attempt(finishCutOff({ client, events, notifier }, run, before, settled ?? new Set()));
    return { asked, notes, notified, isOne };
  }

  const askedFor = async (workloads: Entry[], all: Dependent[] = [], isPending = false) => {
    const { asked, isOne } = await lookFor(workloads, { all, isPending, there: { migrate: job("other") } });
    assert.equal(isOne, false);
    return asked;
  };

  it("is looked for by its copy if the status announces it, and no watch shows it although all are in sync", async () => {
    assert.deepEqual(await askedFor([waiting]), [copyName("old"), "migrate"]);
  });

  it("is reported once if neither it nor its copy exists, and not if this process has recreated it", async () => {
    const settled = new Set<string>();
    const lost = await lookFor([waiting], { settled });
    const copy = `Job shop/${copyName("old")}`;
    assert.deepEqual(lost.notes, [
      `Job shop/migrate and its copy, ${copy}, no longer exist; create Job shop/migrate again`,
    ]);
    assert.deepEqual(lost.notified, ["RestartFailed migrate"]);
    assert.equal(lost.isOne, false);
    assert.deepEqual(await lookFor([waiting], { settled }), { asked: [], notes: [], notified: [], isOne: false });
    assert.deepEqual((await lookFor([waiting], { there: { migrate: job("other") } })).notes, []);
  });

  it("does not keep another one from being created if a different Job has its name", async () => {
    const second = { ...waiting, name: "second", uid: "second" };
    const copies = [waiting, second].map(({ name, uid }) => {
      const former = kubeObjectOf({ ...job(uid), spec: { template: {} }, metadata: { ...job(uid).metadata, name } });
      const metadata = { name: copyName(uid), uid: "copy", resourceVersion: "1", generation: 1 };
      return [copyName(uid), { ...former, ...copyOf(former), metadata }];
    });
    const there = { migrate: job("other"), ...Object.fromEntries(copies) };
    const settled = new Set<string>();
    const { isOne, notes } = await lookFor([waiting, second], { there, settled });
    assert.ok(isOne instanceof Problem && isOne.reason === "Rejected", String(isOne));
    assert.deepEqual([[...settled], notes], [["second"], []]);
  });

  it("is not looked for if nothing was interrupted: no other request is made", async () => {
    assert.deepEqual(await askedFor([waiting], [dependent("old")]), []);
    assert.deepEqual(await askedFor([waiting], [], true), []);
    assert.deepEqual(await askedFor([{ ...waiting, state: "Done" }]), []);
    assert.deepEqual(await askedFor([{ ...entry, state: "Waiting" }]), []);
    assert.deepEqual(await askedFor([{ ...entry, state: "Waiting", stamp: "1-abc" }]), []);
    assert.deepEqual(await askedFor([{ ...waiting, apiVersion: "apps/v1", kind: "Deployment" }]), []);
  });
});
