/** Which workloads have their pods replaced, and the messages for those whose pods can't be. */
import assert from "node:assert/strict";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import type { RolloutDecision } from "../../../../src/rollout/decide/engine.ts";
import { replacePods } from "../../../../src/rollout/restart/replace-pods.ts";
import { replacingOf } from "../../../../src/workloads/pod-replacement.ts";
import type { Progress } from "../../../../src/workloads/progress.ts";
import { fakeClient } from "../../fakes.ts";
import { dependentOf, kubeObjectOf } from "../../objects.ts";

type Entry = NonNullable<NonNullable<RolloutDecision["status"]["pending"]>["workloads"]>[number];

const statefulSet = (name: string) => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name, uid: name, generation: 1, resourceVersion: "1" },
  spec: { replicas: 1, selector: {}, updateStrategy: { type: "OnDelete" } },
  status: { observedGeneration: 1, updateRevision: "new" },
});

const workload = (name: string, state: Entry["state"], progress: Progress["state"] = "Rolling") => ({
  dependent: dependentOf({
    ref: { namespace: "shop", name },
    version: { uid: name },
    workload: {
      progress: { state: progress, message: "" },
      replacing: replacingOf(statefulSet(name)) ?? assert.fail(),
    },
  }),
  entry: { uid: name, name, state, message: "0 of 1 pods are updated" } as Entry,
});

/** The workloads of which a pod was evicted, and the messages. */
async function replaced(all: ReturnType<typeof workload>[], { isSeen = true, status = 0 } = {}) {
  const evicted: string[] = [];
  const client = fakeClient({
    async *list() {
      const pod = (owner: string) =>
        kubeObjectOf({ metadata: { name: `${owner}-0`, uid: owner, labels: {}, ownerReferences: [{ uid: owner }] } });
      yield all.map(({ dependent }) => pod(dependent.version.uid));
    },
    get: async (_: unknown, { name }: { name: string }) => statefulSet(name),
    async evict(_: unknown, { name }: { name: string }) {
      evicted.push(name);
      if (status > 0) throw new ApiError("it", status, "Refused");
    },
  });
  const run = {
    identity: serviceAccountIdentity("shop", "inlay"),
    dependents: {
      all: all.map(({ dependent }) => dependent),
      used: new Set<string>(),
      pending: false,
      unknown: [],
      missing: [],
      unread: [],
      problem: undefined,
    },
  };
  const pending = {
    firstChangeTime: "",
    lastChangeTime: "",
    reason: "",
    message: "",
    workloads: all.map(({ entry }) => entry),
  };
  const decided: RolloutDecision = {
    status: { digestKeyID: "", revision: 0, pending },
    stamps: [],
    unstamped: { began: undefined, restarted: undefined, last: undefined },
    rolling: [],
    unaged: [],
    unread: [],
    happened: [],
  };
  const { done, problem } = await replacePods(client, run, decided, () => isSeen);
  return {
    evicted,
    problem,
    again: done.requeueAfterMs,
    said: done.status.pending?.workloads?.map(({ message }) => message),
  };
}

describe("old pods that Inlay replaces", () => {
  it("are evicted for workloads that were restarted and are not done, including failed ones", async () => {
    const states = ["Rolling", "Failed", "Waiting", "Done"] as const;
    const { evicted, again } = await replaced(states.map((state) => workload(state.toLowerCase(), state)));
    assert.deepEqual([evicted.sort(), again], [["failed-0", "rolling-0"], 10_000]);
    assert.deepEqual((await replaced([workload("db", "Rolling", "Done")])).evicted, []);
    assert.deepEqual(await replaced([]), { evicted: [], problem: undefined, again: undefined, said: [] });
  });

  it("stay until the watch shows the restart: before, it is not known which are old", async () => {
    assert.deepEqual((await replaced([workload("db", "Rolling")], { isSeen: false })).evicted, []);
  });

  it("that may not be evicted are reported, for their workload or for the binding", async () => {
    const held = await replaced([workload("db", "Rolling")], { status: 429 });
    assert.deepEqual(held.said, ["a PodDisruptionBudget permits no eviction of its pods at the moment; Inlay retries"]);
    assert.equal(held.problem, undefined);
    const refused = await replaced([workload("db", "Rolling")], { status: 403 });
    assert.equal(refused.problem?.reason, "Forbidden");
    assert.equal(refused.again, 10_000);
  });
});
