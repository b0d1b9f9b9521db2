/** When restarts wait for the controllers of targets, and the message about that. */

import assert from "node:assert/strict";
import type { JsonObject, ObjectRef } from "../../../../src/apimachinery/objects.ts";
import type { KindSchema } from "../../../../src/apimachinery/openapi.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import {
  type AwaitedTarget,
  kindsWithoutStatus,
  targetsNotObserved,
  unseenNote,
} from "../../../../src/rollout/decide/wait-for-targets.ts";
import { FakeApiServer } from "../../api-server.ts";
import { HARBORS, SECRETS } from "../../resources.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const VALUE = "QXZJ0123456789";
const refOf = (name: string): ObjectRef => ({ resource: HARBORS, namespace: "registry", name });
const ready = (more: JsonObject = {}): JsonObject => ({ type: "Ready", status: "True", ...more });

describe("a rollout that waits for its targets", () => {
  let cluster: FakeApiServer;
  beforeEach(() => {
    cluster = new FakeApiServer();
  });

  /** A target of generation 3. */
  function put(status: unknown, name = "harbor"): ObjectRef {
    const metadata = { namespace: "registry", name, uid: `uid-${name}`, resourceVersion: "7", generation: 3 };
    const object = { metadata, status };
    cluster.put(HARBORS, object);
    return refOf(name);
  }

  const lookAt = (targets: readonly AwaitedTarget[], condition?: string) =>
    targetsNotObserved(cluster.client, ACCOUNT, targets, condition === undefined ? {} : { condition });
  const holdOf = async (targets: readonly ObjectRef[], condition?: string) =>
    (
      await lookAt(
        targets.map((ref) => ({ ref, isApart: false })),
        condition,
      )
    ).everywhere;

  /** Why it waits for a target with that status. A change of the target ends the wait, so there is no retry. */
  async function whyNot(status: unknown, condition?: string): Promise<string | undefined> {
    const hold = await holdOf([put(status)], condition);
    if (hold === undefined) return undefined;
    assert.deepEqual([hold.reason, hold.requeueAfterMs], ["TargetsNotReady", undefined]);
    return /^spec\.rollout\.waitForTargets: HarborCluster registry\/harbor (.*)$/.exec(hold.message)?.[1];
  }

  it("continues once every controller has seen the current generation of its target", async () => {
    assert.equal(await whyNot({ observedGeneration: 2 }), "is at generation 3, and its controller has observed 2");
    for (const observedGeneration of [3, 4]) assert.equal(await whyNot({ observedGeneration }), undefined);
  });

  it("asks for a condition if a controller does not report what it has seen", async () => {
    const untold = (what: string) => `has no ${what}; set waitForTargets.condition to one of its conditions`;
    assert.equal(await whyNot(undefined), untold("status"));
    for (const status of [{}, { observedGeneration: VALUE }])
      assert.equal(await whyNot(status), untold("status.observedGeneration"));
  });

  it("continues once the named condition is True for the current generation", async () => {
    const seen = (...conditions: unknown[]) => whyNot({ observedGeneration: 3, conditions }, "Ready");
    assert.equal(await seen({ type: "Synced", status: "True" }), "has no condition Ready yet");
    for (const status of ["False", "Unknown", VALUE])
      assert.equal(await seen(ready({ status })), "has the condition Ready, and it is not True");
    assert.equal(await seen(ready({ observedGeneration: 2 })), "has the condition Ready for an earlier generation");
    assert.equal(await seen(ready({ observedGeneration: 3 })), undefined);
    assert.equal(await seen(null, VALUE, ready()), undefined);
  });

  it("needs no observedGeneration if it names a condition, but waits if that one is too old", async () => {
    assert.equal(await whyNot({ conditions: [ready()] }, "Ready"), undefined);
    const behind = { observedGeneration: 2, conditions: [ready({ observedGeneration: 3 })] };
    assert.equal(await whyNot(behind, "Ready"), "is at generation 3, and its controller has observed 2");
  });

  it("waits for a target that does not exist", async () => {
    const hold = await holdOf([refOf("gone")]);
    assert.deepEqual(hold, {
      reason: "TargetsNotReady",
      message: "spec.rollout.waitForTargets: HarborCluster registry/gone does not exist",
    });
  });

  it("retries after five seconds if it can't read a target, because no event follows", async () => {
    cluster.intervene = () => new ApiError("GET", 403, "Forbidden");
    const hold = await holdOf([put({ observedGeneration: 3 })]);
    assert.match(hold?.message ?? "", /^spec\.rollout\.waitForTargets: ServiceAccount registry\/inlay may not get /);
    assert.deepEqual([hold?.reason, hold?.requeueAfterMs], ["TargetsNotReady", 5_000]);
  });

  it("reads the current version of each target as the account", async () => {
    await holdOf([put({ observedGeneration: 3 })]);
    const path = "/apis/goharbor.io/v1beta1/namespaces/registry/harborclusters/harbor";
    assert.deepEqual(cluster.requests, [`${ACCOUNT} GET ${path}`]);
  });

  it("does not wait for kinds whose schema has no status, and says so", async () => {
    const plain = { ...HARBORS, hasStatus: false };
    const targets = [plain, HARBORS, SECRETS].map((resource) => ({ ref: { resource, name: "one" }, isApart: false }));
    const without = async (properties: object | undefined, more: object = {}) => {
      const schema = properties && { root: { type: "object", properties, ...more }, resolve: () => undefined };
      const found = await kindsWithoutStatus({ of: () => Promise.resolve(schema as KindSchema | undefined) }, targets);
      return [[...found].map(({ kind }) => kind), unseenNote(found)];
    };
    const [kinds, note] = await without({ spec: {} });
    assert.deepEqual(kinds, ["HarborCluster", "Secret"]);
    assert.match(String(note), /did not wait for the HarborCluster, Secret among the targets/);
    for (const open of [{ status: {} }, undefined]) assert.deepEqual(await without(open), [[], undefined]);
    assert.deepEqual(await without({}, { "x-kubernetes-preserve-unknown-fields": true }), [[], undefined]);
  });

  it("compares with the generation of the write in a kind without the subresource, or says that it is not known", async () => {
    const ref = { ...put({ observedGeneration: 2 }), resource: { ...HARBORS, hasStatus: false } };
    const look = async (generation: number, uid = "uid-harbor") =>
      (await lookAt([{ ref, isApart: false, written: { uid, resourceVersion: "1", generation } }])).everywhere?.message;
    assert.equal(await look(2), undefined);
    assert.match(String(await look(3)), /is at generation 3, and its controller has observed 2$/);
    assert.match(String(await look(2, "uid-of-a-former-one")), /has observed 2 \(its kind has no status subresource, /);
  });

  it("names the first target that it waits for, and reads few others", async () => {
    const behind = put({ observedGeneration: 1 }, "behind");
    const others = Array.from({ length: 100 }, (_, index) => put({ observedGeneration: 2 }, `other-${index}`));
    const hold = await holdOf([put({ observedGeneration: 3 }), behind, ...others]);
    assert.match(hold?.message ?? "", / registry\/behind is at generation 3, and its controller has observed 1$/);
    assert.ok(cluster.requests.length < 50, `${cluster.requests.length} targets`);
  });

  it("repeats no text that a controller writes", async () => {
    const said = { reason: VALUE, message: VALUE, status: VALUE, observedGeneration: VALUE };
    for (const condition of [undefined, "Ready", "Synced"]) {
      const hold = await holdOf(
        [put({ observedGeneration: VALUE, phase: VALUE, conditions: [ready(said)] })],
        condition,
      );
      assert.ok(hold !== undefined && !JSON.stringify(hold).includes(VALUE), hold?.message);
    }
  });

  it("waits only in that namespace for a target in one of many namespaces", async () => {
    const apart = { ref: put({ observedGeneration: 2 }), isApart: true };
    const seen = { ref: put({ observedGeneration: 3 }, "seen"), isApart: false };
    const { everywhere, namespaces } = await lookAt([apart, seen]);
    assert.deepEqual([everywhere, [...namespaces.keys()]], [undefined, ["registry"]]);
  });
});
