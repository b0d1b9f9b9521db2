/** Shows that workloads are found by the references of their pods, and that their progress is observed, with real controllers. */
import assert from "node:assert/strict";
import { parseApiVersion, type Resource } from "../../src/apimachinery/objects.ts";
import { Informers } from "../../src/cache/informers.ts";
import type { CollectionSubscription } from "../../src/cache/subscription.ts";
import type { ListedObject, Watcher } from "../../src/cache/watcher.ts";
import { Client } from "../../src/kube/client.ts";
import { loadCredentials } from "../../src/kube/credentials.ts";
import { serviceAccountIdentity } from "../../src/kube/identity.ts";
import { Transport } from "../../src/kube/transport.ts";
import { WORKLOAD_KINDS } from "../../src/workloads/workload.ts";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { createNamespace, type TestNamespace } from "../controller/test-namespace.ts";

type Known = "Deployment" | "StatefulSet" | "DaemonSet" | "CronJob" | "Job";

const KINDS: Known[] = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"];
const plural = (kind: Known) => `${kind.toLowerCase()}s`;
const resourceOf = (kind: Known): Resource => ({
  ...parseApiVersion(WORKLOAD_KINDS[kind].apiVersion),
  kind,
  plural: plural(kind),
  namespaced: true,
  hasStatus: true,
});
const LIMIT_MS = 60_000;

describe("workloads", function () {
  this.timeout("3m");
  let transport: Transport;
  let informers: Informers;
  let watcher: Watcher;
  let team: TestNamespace;
  const called: string[] = [];
  let onChange = () => {};

  before(async () => {
    const rules = ["apps", "batch"].map((group) => ({
      apiGroups: [group],
      resources: KINDS.filter((kind) => resourceOf(kind).group === group).map(plural),
      verbs: ["list", "watch"],
    }));
    team = await createNamespace({ controller: false, rules });
    // Uses the admin's credentials: the audit check allows the controller only requests that a binding names.
    transport = new Transport(await loadCredentials(controlPlane().kubeconfigFile));
    informers = new Informers(transport, new Client(transport), () => {});
    watcher = informers.watcher((key) => {
      called.push(key);
      onChange();
    });
  });
  after(async () => {
    await informers.stop();
    await transport.close();
  });

  const collection = (kind: Known, secret: string): CollectionSubscription => ({
    identity: serviceAccountIdentity(team.namespace, "inlay"),
    resource: resourceOf(kind),
    namespace: team.namespace,
    labels: "",
    names: undefined,
    workload: { template: WORKLOAD_KINDS[kind].template },
    consumersOf: { kind: "Secret", name: secret },
  });
  const consumers = (kind: Known, secret = "bucket"): readonly ListedObject[] =>
    watcher.list(secret, collection(kind, secret)).members;
  const path = (kind: Known, name = "") =>
    `${team.path(WORKLOAD_KINDS[kind].apiVersion, plural(kind))}${name && `/${name}`}`;

  /** The spec of a workload whose pods read a Secret. Each turn changes its template. */
  function specOf(kind: Known, name: string, secret = "bucket", turn = 0): object {
    const labels = { app: `${kind}-${name}` };
    const isRun = kind === "CronJob" || kind === "Job";
    const template = {
      metadata: { labels, annotations: { turn: String(turn) } },
      spec: {
        restartPolicy: isRun ? "Never" : "Always",
        containers: [{ name: "web", image: "web", envFrom: [{ secretRef: { name: secret } }] }],
      },
    };
    if (kind === "CronJob") return { schedule: "0 0 1 1 *", jobTemplate: { spec: { template } } };
    if (kind === "Job") return { suspend: true, template };
    const own = kind === "StatefulSet" ? { serviceName: "web" } : {};
    return { ...own, ...(kind !== "DaemonSet" && { replicas: 2 }), selector: { matchLabels: labels }, template };
  }
  const create = (name: string) =>
    Promise.all(KINDS.map((kind) => team.api.create(path(kind), { metadata: { name }, spec: specOf(kind, name) })));

  /** The turns of the pods of a workload that are not being deleted. */
  async function turns(kind: Known, name: string): Promise<string[]> {
    const { items } = await team.api.get(`${team.path("v1", "pods")}?labelSelector=app%3D${kind}-${name}`);
    const metadata = items.map((pod: AnyObject) => pod.metadata);
    return metadata.flatMap((each: AnyObject) => (each.deletionTimestamp ? [] : [each.annotations.turn]));
  }

  it("of every kind are found by the references of their pods, existing ones and new ones", async () => {
    await create("early");
    watcher.subscribe(
      "bucket",
      KINDS.map((kind) => collection(kind, "bucket")),
    );
    watcher.subscribe("other", [collection("Deployment", "other")]);
    await eventually(() => {
      for (const kind of KINDS)
        assert.deepEqual(
          consumers(kind).map(({ name }) => name),
          ["early"],
          kind,
        );
    });
    await create("late");
    await eventually(() => {
      for (const kind of KINDS)
        assert.deepEqual(
          consumers(kind)
            .map(({ name }) => name)
            .toSorted(),
          ["early", "late"],
          kind,
        );
    });
    for (const kind of KINDS)
      assert.deepEqual(consumers(kind)[0]?.version.workload?.references, [
        { kind: "Secret", name: "bucket", by: "envFrom" },
      ]);
  });

  for (const kind of ["Deployment", "StatefulSet", "DaemonSet"] as const) {
    it(`of the kind ${kind} are Done, Rolling after a change, and Done again when their pods are new`, async () => {
      const early = () => consumers(kind).find(({ name }) => name === "early")?.version;
      const assertDone = () => {
        const progress = early()?.workload?.progress;
        assert.equal(progress?.state, "Done", progress?.message);
      };
      await eventually(assertDone, LIMIT_MS);
      const seen: [generation: number | undefined, state: string | undefined][] = [];
      onChange = () => seen.push([early()?.generation, early()?.workload?.progress.state]);
      const spec = specOf(kind, "early", "bucket", 1);
      const { metadata } = await team.api.merge(path(kind, "early"), { spec });
      // The result for the former generation does not count.
      await eventually(() => assert.ok((early()?.generation ?? 0) >= metadata.generation));
      await eventually(assertDone, LIMIT_MS);
      onChange = () => {};
      const since = seen.filter(([generation = 0]) => generation >= metadata.generation).map(([, state]) => state);
      assert.deepEqual([...new Set(since)], ["Rolling", "Done"]);
      assert.deepEqual(await turns(kind, "early"), kind === "DaemonSet" ? ["1"] : ["1", "1"]);
    });
  }

  it("that change to another Secret are consumers of that Secret only, and both subscriptions are notified", async () => {
    called.length = 0;
    await team.api.merge(path("Deployment", "late"), {
      spec: specOf("Deployment", "late", "other"),
    });
    await eventually(() => {
      assert.deepEqual(
        consumers("Deployment", "other").map(({ name }) => name),
        ["late"],
      );
      assert.deepEqual(
        consumers("Deployment").map(({ name }) => name),
        ["early"],
      );
    });
    assert.deepEqual([...new Set(called)].toSorted(), ["bucket", "other"]);
    await team.api.delete(path("Deployment", "late"));
    await eventually(() => assert.deepEqual(consumers("Deployment", "other"), []));
  });
});
