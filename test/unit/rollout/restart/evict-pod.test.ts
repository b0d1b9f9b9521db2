/** One pod is evicted at a time, and the reason is reported if none can be. */
import assert from "node:assert/strict";
import type { Resource } from "../../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { Selectors } from "../../../../src/kube/client.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { evictNextPod } from "../../../../src/rollout/restart/replace-pods.ts";
import { replacingOf } from "../../../../src/workloads/pod-replacement.ts";
import { fakeClient } from "../../fakes.ts";
import { dependentOf, kubeObjectOf } from "../../objects.ts";

const STATEFUL_SETS = {
  group: "apps",
  version: "v1",
  kind: "StatefulSet",
  plural: "statefulsets",
  namespaced: true,
  hasStatus: true,
};
const ACCOUNT = serviceAccountIdentity("shop", "inlay");
/** A StatefulSet as its controller has observed it. */
const shown = (revision: string, type = "OnDelete", uid = "db") => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  metadata: { name: "db", uid, generation: 1, resourceVersion: "1" },
  spec: { replicas: 2, selector: { matchLabels: { app: "db" } }, updateStrategy: { type } },
  status: { observedGeneration: 1, updateRevision: revision },
});
const REPLACING = replacingOf(shown("new"));
const DEPENDENT = dependentOf({
  ref: { resource: STATEFUL_SETS, namespace: "shop", name: "db" },
  version: { uid: "db" },
});

const pod = (name: string, owner = "db") =>
  kubeObjectOf({
    kind: "Pod",
    metadata: {
      name,
      uid: `uid-${name}`,
      labels: { "controller-revision-hash": "old" },
      ownerReferences: [{ uid: owner }],
    },
    status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-11-21T10:00:00Z" }] },
  });

/** The evicted pods, and the result. */
async function replaced(failures: { list?: number; evict?: number; get?: number } = {}, latest = shown("new")) {
  const evicted: string[] = [];
  const fail = (status: number | undefined, reason: string) => {
    if (status !== undefined) throw new ApiError("it", status, reason);
  };
  const client = fakeClient({
    async *list(_: unknown, { plural }: Resource, namespace: string, { labels = "" }: Selectors = {}) {
      assert.deepEqual([plural, namespace, labels], ["pods", "shop", "app=db"]);
      fail(failures.list, "Forbidden");
      yield [pod("db-1"), pod("db-7", "another")];
      yield [pod("db-0")];
    },
    async get(_: unknown, { name }: { name: string }) {
      assert.equal(name, "db");
      fail(failures.get, failures.get === 404 ? "NotFound" : "Forbidden");
      return latest;
    },
    async evict(_: unknown, { name }: { name: string }, uid: string) {
      evicted.push(`${name} ${uid}`);
      fail(failures.evict, failures.evict === 404 ? "NotFound" : "Forbidden");
    },
  });
  assert.ok(REPLACING !== undefined);
  const result = await evictNextPod(client, ACCOUNT, DEPENDENT, REPLACING, Date.now()).catch((error) => error);
  return { evicted, result };
}

describe("pods that Inlay replaces", () => {
  it("are evicted one at a time, by their uid, and only those of the workload", async () => {
    const { evicted, result } = await replaced();
    assert.deepEqual(evicted, ["db-1 uid-db-1"]);
    assert.deepEqual(result, { requeueAfterMs: 10_000 });
  });

  it("stay if they are not old by the present workload", async () => {
    for (const latest of [shown("old"), shown("new", "RollingUpdate"), shown("new", "OnDelete", "another")])
      assert.deepEqual(await replaced({}, latest), { evicted: [], result: { requeueAfterMs: 10_000 } });
    assert.deepEqual(await replaced({ get: 404 }), { evicted: [], result: { requeueAfterMs: 10_000 } });
    assert.match((await replaced({ get: 403 })).result.message, /--verb=get/);
  });

  it("wait for a PodDisruptionBudget that permits no eviction, which is reported", async () => {
    const { result } = await replaced({ evict: 429 });
    assert.deepEqual(result, {
      requeueAfterMs: 10_000,
      message: "a PodDisruptionBudget permits no eviction of its pods at the moment; Inlay retries",
    });
  });

  it("may have been deleted already", async () => {
    for (const status of [404, 409])
      assert.deepEqual((await replaced({ evict: status })).result, { requeueAfterMs: 10_000 });
  });

  it("stay if the account may not evict, and the message has the command that permits it", async () => {
    const list = (await replaced({ list: 403 })).result;
    assert.match(list.message, /kubectl create role inlay-uses-\w+ -n shop --verb=list --resource=pods;/);
    const evict = (await replaced({ evict: 403 })).result;
    assert.match(evict.message, /role inlay-creates-\w+ -n shop --verb=create --resource=pods\/eviction;/);
  });
});
