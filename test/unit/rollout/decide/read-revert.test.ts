/** What is read of a workload whose restart another client reverted: the age of its pods, and who may have done it. */
import assert from "node:assert/strict";
import type { Resource } from "../../../../src/apimachinery/objects.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { Client } from "../../../../src/kube/client.ts";
import { serviceAccountIdentity } from "../../../../src/kube/identity.ts";
import { readRevert } from "../../../../src/rollout/decide/read-workload.ts";
import { dependentOf } from "../../objects.ts";

const ACCOUNT = serviceAccountIdentity("registry", "inlay");
const SINCE = "2026-11-27T10:00:00.500Z";
const [BEFORE, SAME, AFTER] = ["2026-11-27T09:59:59Z", "2026-11-27T10:00:00Z", "2026-11-27T10:00:01Z"];
const OWN = { manager: "inlay-rollout", operation: "Update", time: AFTER, fieldsV1: { "f:spec": {} } };

describe("a reverted restart", () => {
  /** Reads the Deployment `core` with these entries of managedFields, and pods that were created at these times. */
  function read(
    managedFields: object[],
    pods: readonly string[] | "denied" | "unavailable" = [],
    spec: object = {},
    more: object = {},
    dependent = dependentOf(),
  ) {
    const selector = { matchLabels: { app: "core" } };
    const object = { metadata: { name: "core", uid: "uid-core", managedFields, ...more }, spec: { selector, ...spec } };
    const client = {
      get: () => Promise.resolve(object),
      async *list(_: unknown, { kind }: Resource, namespace: string, selectors: object) {
        assert.deepEqual([kind, namespace, selectors], ["Pod", "registry", { labels: "app=core" }]);
        if (pods === "denied") throw new ApiError("GET", 403, "Forbidden");
        if (pods === "unavailable") throw new ApiError("GET", 503, "ServiceUnavailable");
        yield pods.map((creationTimestamp) => ({ metadata: { name: "core-1", creationTimestamp } }));
      },
    };
    return readRevert(client as unknown as Client, ACCOUNT, dependent, SINCE);
  }

  it("does not matter if all pods are newer, and counts a pod of the same second as older", async () => {
    assert.equal((await read([], [AFTER])).isReplaced, true);
    for (const time of [BEFORE, SAME]) assert.equal((await read([], [AFTER, time])).isReplaced, false);
  });

  it("does not matter for a workload without pods", async () => {
    assert.equal((await read([], "denied", { replicas: 0 })).isReplaced, true);
    const { isReplaced, arePodsUnknown } = await read([], "denied", { replicas: 1 });
    assert.deepEqual([isReplaced, arePodsUnknown], [false, true]);
  });

  it("is not judged while the API server does not answer", async () => {
    await assert.rejects(read([], "unavailable"), { reason: "Unavailable" });
  });

  it("is not judged by spec.selector of a custom kind, which may select anything", async () => {
    const resource = {
      group: "example.com",
      version: "v1",
      plural: "apps",
      kind: "App",
      namespaced: true,
      hasStatus: true,
    };
    const own = dependentOf({ ref: { resource } });
    const selector = { matchExpressions: "not a list" };
    assert.deepEqual(await read([], [AFTER], { selector }, {}, own).then(({ isReplaced }) => isReplaced), false);
  });

  it("names the managers that changed the spec since then, or have fields there, and not those of other parts", async () => {
    const template = { "f:template": { "f:spec": {} } };
    const entry = (manager: string, time: string, fieldsV1: object, more: object = {}) => ({
      manager,
      time,
      fieldsV1,
      ...more,
    });
    const revision = { "f:metadata": { "f:annotations": {} } };
    const controller = entry("kube-controller-manager", AFTER, revision);
    const status = entry("kube-controller-manager", AFTER, { "f:spec": {} }, { subresource: "status" });
    const by = async (...entries: object[]) => (await read([OWN, controller, status, ...entries])).by;
    assert.match(
      await by(entry("operator", AFTER, { "f:spec": {} })),
      /managedFields show, operator changed spec since/,
    );
    assert.match(
      await by(entry("operator", BEFORE, { "f:spec": template })),
      /do not show who removed it, and spec\.template has fields of operator$/,
    );
    assert.match(await by(entry("scaler", BEFORE, { "f:spec": { "f:replicas": {} } })), /do not show who removed it$/);
    const names = ["a", "b", "c", "d"].map((name) => entry(name, AFTER, { "f:spec": {} }));
    assert.match(await by(...names), /a, b, c and 1 more changed/);
  });

  it("names the controller that owns the workload", async () => {
    const ownerReferences = [{ kind: "HarborCluster", name: "main", uid: "1", controller: true }];
    assert.equal((await read([], [], {}, { ownerReferences })).owner, "HarborCluster main");
  });
});
