/** Which labels the leader writes to which pods, in which order, and when it writes none. */
import assert from "node:assert/strict";
import type { KubeObject } from "../../../../src/apimachinery/objects.ts";
import { RegistrationController, replicaOf } from "../../../../src/controllers/registration/controller.ts";
import { ApiError } from "../../../../src/kube/api-error.ts";
import type { WatchEvent } from "../../../../src/kube/list-watch.ts";
import { fakeClient } from "../../fakes.ts";

const NAMESPACE = "inlay-system";

interface Pod {
  name: string;
  labels?: Record<string, string>;
  deployment?: string;
  hash?: string;
  ip?: string;
}

const podOf = ({ name, labels = {}, deployment = "inlay-controller", hash = "abc", ip }: Pod): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: NAMESPACE,
    uid: `uid-${name}`,
    resourceVersion: "1",
    labels: { "app.kubernetes.io/name": "inlay", "pod-template-hash": hash, ...labels },
    ownerReferences: [{ uid: "owner", kind: "ReplicaSet", name: `${deployment}-${hash}`, controller: true }],
  },
  spec: { containers: [{ ports: [{ name: "health", containerPort: 8081 }] }] },
  status: { phase: "Running", ...(ip !== undefined && { podIP: ip }) },
});

const OWN = { name: "own", labels: { "inlay-active": "true", "inlay-version": "1.0.0" } };

describe("the registration of replicas", () => {
  let pods: KubeObject[];
  let patches: { name: string; metadata: { labels: object } }[];
  let logged: string[];
  let refused: boolean;
  /** The name of a pod that can't be changed. */
  let fixed: string | undefined;
  let versions: Record<string, string | undefined>;
  let controller: RegistrationController;

  beforeEach(() => {
    pods = [podOf({ name: "own" })];
    patches = [];
    logged = [];
    refused = false;
    fixed = undefined;
    versions = {};
    const log = (_: object, text: string) => void logged.push(text);
    controller = new RegistrationController(
      {
        installation: { ownNamespace: NAMESPACE },
        client: fakeClient({
          async *list(_identity, _resource, _namespace, { fields } = {}) {
            if (refused) throw new ApiError("LIST pods", 403, "Forbidden");
            yield pods.filter(({ metadata }) => fields === `metadata.name=${metadata.name}`);
          },
          async mergePatch(_identity, { name }, patch) {
            if (name === fixed) throw new ApiError("PATCH pods", 403, "Forbidden");
            const { metadata } = patch as { metadata: { labels: object } };
            patches.push({ name, metadata });
          },
        }),
        listWatch: () => ({
          async *list() {
            yield { items: pods, resourceVersion: "1" };
          },
          async *watch(_version, _seconds, signal, onOpen): AsyncGenerator<WatchEvent, void> {
            onOpen();
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
          },
        }),
        replica: { podName: "own", version: "1.0.0" },
        log: { debug: log, info: log },
      },
      async ({ host, port }) => versions[`${host}:${port}`],
    );
  });
  afterEach(() => controller.stop());

  /** The labels that each pod gets, once the pods are known. */
  const labelled = async () => {
    await controller.reconcile();
    await new Promise(setImmediate);
    const result = await controller.reconcile();
    return { result, labels: patches.map(({ name, metadata }) => [name, metadata.labels]) };
  };

  it("labels the other pods of its Deployment first, whatever their ReplicaSet, and then itself as active", async () => {
    pods.push(
      podOf({ name: "former", labels: { "inlay-active": "true", "inlay-version": "0.9.0" }, hash: "def" }),
      podOf({ name: "stranger", deployment: "other" }),
    );
    const { labels, result } = await labelled();
    assert.deepEqual(labels, [
      ["former", { "inlay-active": "false" }],
      ["own", { "inlay-active": "true", "inlay-version": "1.0.0" }],
      // The watch of this test lags behind its own writes.
      ["former", { "inlay-active": "false" }],
    ]);
    assert.deepEqual(result, { retry: "after", ms: 10_000 });
    assert.ok(patches.every(({ metadata }) => "resourceVersion" in metadata && "uid" in metadata));
  });

  it("sets the label of a pod that is no replica to false, and labels itself even if that fails", async () => {
    const active = { "inlay-active": "true" };
    const bare = ({ metadata, ...pod }: KubeObject) => ({ ...pod, metadata: { ...metadata, ownerReferences: [] } });
    pods.push(
      bare(podOf({ name: "bare", labels: active })),
      podOf({ name: "stranger", deployment: "other", labels: { ...active, "inlay-version": "9.9.9" } }),
      bare(podOf({ name: "quiet", labels: { "inlay-active": "false" } })),
      podOf({ name: "former", labels: { "inlay-active": "false", "inlay-version": "1.0.0" } }),
    );
    const own = ["own", { "inlay-active": "true", "inlay-version": "1.0.0" }];
    const labels = { "inlay-active": "false" };
    assert.deepEqual((await labelled()).labels, [own, ["bare", labels], ["stranger", labels]]);
    patches = [];
    fixed = "bare";
    assert.deepEqual(await labelled(), {
      result: { retry: "after", ms: 10_000 },
      // This watch still shows the former pods, so each of two reconciles writes.
      labels: [own, ["stranger", labels], own, ["stranger", labels]],
    });
  });

  it("asks the other replicas for their version, and keeps the label of one that does not answer", async () => {
    const labels = { "inlay-active": "false" };
    pods = [
      podOf(OWN),
      podOf({ name: "new", labels, ip: "10.0.0.1" }),
      podOf({ name: "silent", labels: { ...labels, "inlay-version": "0.9.0" }, ip: "10.0.0.2" }),
      podOf({ name: "odd", labels, ip: "10.0.0.3" }),
    ];
    versions = { "10.0.0.1:8081": "1.1.0+build", "10.0.0.3:8081": "no version at all" };
    assert.deepEqual((await labelled()).labels, [["new", { "inlay-version": "1.1.0-build" }]]);
  });

  it("writes nothing if all labels are right", async () => {
    pods = [podOf(OWN), podOf({ name: "other", labels: { "inlay-active": "false", "inlay-version": "1.0.0" } })];
    assert.deepEqual((await labelled()).labels, []);
  });

  it("sets its own label to false when it resigns, if it is true", async () => {
    await controller.resign();
    assert.deepEqual(patches, []);
    pods = [podOf(OWN)];
    await labelled();
    await controller.resign();
    assert.deepEqual(patches, [{ name: "own", metadata: { uid: "uid-own", labels: { "inlay-active": "false" } } }]);
  });

  it("does so even if the watch does not show yet that the label is true", async () => {
    await labelled();
    patches = [];
    await controller.resign();
    assert.deepEqual(patches, [{ name: "own", metadata: { uid: "uid-own", labels: { "inlay-active": "false" } } }]);
  });

  it("labels nothing if it finds no pod of its own, and logs that once", async () => {
    pods = [podOf({ name: "other" })];
    assert.deepEqual(await controller.reconcile(), { retry: "never" });
    assert.deepEqual([patches, logged], [[], ["found no pod of this process, so no replica is labelled"]]);
  });

  it("logs once that it is not permitted, and retries later", async () => {
    refused = true;
    for (let tries = 0; tries < 2; tries++)
      assert.deepEqual(await controller.reconcile(), { retry: "after", ms: 60_000 });
    assert.match(logged.join("\n"), /^Inlay may not label the pods .* Role inlay-controller$/);
    refused = false;
    assert.equal((await labelled()).labels.length, 1);
  });

  it("treats a pod without a Deployment as the only replica", () => {
    const { metadata, ...pod } = podOf({ name: "bare" });
    const bare = { ...pod, metadata: { ...metadata, ownerReferences: [] } };
    assert.equal(replicaOf(bare).group, "Pod uid-bare");
    assert.equal(replicaOf(podOf({ name: "own", hash: "x-y" })).group, "Deployment inlay-controller");
  });
});
