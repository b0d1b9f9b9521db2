/**
 * A composition with many claims, next to a client that creates the same bindings itself: how fast they are created, their cost, and how
 * fast a claim's change reaches its binding. The controller reconciles the bindings in both cases.
 */
import { join } from "node:path";
import { harborCluster } from "../test/controller/harbor.ts";
import { measureLatency, processorSeconds, reportLatency } from "./beside.ts";
import { type AnyObject, atOnce } from "./cluster.ts";
import type { Course } from "./course.ts";
import type { Rig } from "./rig.ts";
import { ms } from "./table.ts";
import { accessKeyOf, bindingPath, dropBindings, harborPath, makeNamespace, secretPath } from "./world.ts";

const OURS = "composed";
const FLOOR = "directly";
const WIDTH = 50;
/** As many as the controller reconciles at the same time: claims of one namespace leave a quarter of its 64 slots free. */
const CREATED_AT_ONCE = 48;
/** Bindings whose claims change one after the other. */
const CHANGING = 50;
const ENDPOINT = "bench.example.com/endpoint";
const COMPOSITIONS = "/apis/inlay.dev/v1alpha1/bindingcompositions";
const manifest = join(import.meta.dirname, "..", "deploy", "manifests", "optional", "compositions.yaml");

export async function measureCompositions(rig: Rig): Promise<void> {
  const { client, controller, table } = rig;
  const count = rig.of(10_000);
  await install(rig);
  for (const namespace of [FLOOR, OURS]) {
    await makeNamespace(client, namespace);
    await client.send("POST", secretPath(namespace), { metadata: { name: "bucket" }, stringData: { id: "key-0" } });
    await makeClaims(rig, namespace, count);
  }
  table.note(
    `${count} claims; the floor creates ${CREATED_AT_ONCE} bindings at once, and the controller reconciles them:`,
  );
  await controller.start();
  const uids = await uidsOf(rig, FLOOR);
  const theirs = await making(rig, FLOOR, count, () => makeDirectly(rig, uids, count));
  await controller.stop();
  await dropBindings(client);
  await controller.start();
  await controller.process.quiet();
  const from = performance.now();
  const own = await making(rig, OURS, count, () => client.send("POST", COMPOSITIONS, composition()));
  reportMaking(rig, count, theirs, own);
  await rig.synced(count);
  table.ours("  until all are synced", `${((performance.now() - from) / 1_000).toFixed(0)} s`);
  await measureCost(rig, count);
  await measureReads(rig, count);
  await measureRestart(rig, count);
  await measureChanges(rig, uids, Math.min(count, CHANGING));
  await controller.stop();
  await client.merge(`${COMPOSITIONS}/harbor`, { metadata: { finalizers: null } });
  await client.send("DELETE", `${COMPOSITIONS}/harbor`);
  await dropBindings(client);
}

async function install({ cluster }: Rig): Promise<void> {
  await cluster.kubectl("apply", `--filename=${manifest}`);
  const account = "--serviceaccount=inlay-system:inlay-compositions";
  await cluster.kubectl(
    "create",
    "clusterrolebinding",
    "inlay-compositions",
    "--clusterrole=inlay-compositions",
    account,
  );
  const role = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "bench-claims", labels: { "inlay.dev/aggregate-to-compositions": "true" } },
    rules: [
      { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["get", "list", "watch", "patch"] },
      { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
    ],
  };
  await cluster.kubectlWith({ stdin: JSON.stringify(role) }, "apply", "--filename=-");
}

const makeClaims = ({ client }: Rig, namespace: string, count: number) =>
  atOnce(count, WIDTH, (i) => {
    const claim = harborCluster(`h-${i}`) as AnyObject;
    const annotations = { [ENDPOINT]: endpointOf("0") };
    return client.send("POST", harborPath(namespace), { ...claim, metadata: { ...claim.metadata, annotations } });
  });

async function uidsOf({ client }: Rig, namespace: string): Promise<ReadonlyMap<string, string>> {
  const { items } = await client.send("GET", harborPath(namespace));
  return new Map(items.map(({ metadata }: AnyObject) => [metadata.name, metadata.uid]));
}

const endpointOf = (value: string) => `https://${value}.example.com`;

const specOf = (claim: string, endpoint: string) => ({
  sources: [{ name: "bucket", secret: { name: "bucket" } }],
  targets: [
    {
      apiVersion: "goharbor.io/v1beta1",
      kind: "HarborCluster",
      name: claim,
      fields: [
        { path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "id" } },
        { path: "spec.storage.spec.s3.regionendpoint", template: endpoint },
      ],
    },
  ],
});

const composition = () => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "BindingComposition",
  metadata: { name: "harbor" },
  spec: {
    for: { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", namespaceSelector: { names: [OURS] } },
    bindings: [
      {
        name: "s3",
        base: { spec: specOf("claim", endpointOf("0")) },
        patches: [
          { fromFieldPath: "metadata.name", toFieldPath: "spec.targets[0].name" },
          { fromFieldPath: `metadata.annotations[${ENDPOINT}]`, toFieldPath: "spec.targets[0].fields[1].template" },
        ],
      },
    ],
  },
});

/** The bindings that the composition would create, with the same number of labels, annotations and owners. */
const makeDirectly = ({ client }: Rig, uids: ReadonlyMap<string, string>, count: number) =>
  atOnce(count, CREATED_AT_ONCE, (i) => {
    const name = `h-${i}`;
    const uid = uids.get(name) ?? "";
    return client.send("POST", bindingPath(FLOOR), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretBinding",
      metadata: {
        name: `${name}-s3`,
        labels: { "example.com/composition": "harbor", "example.com/binding": "s3", "example.com/claim-uid": uid },
        annotations: { "example.com/claim": `${FLOOR}/${name}`, "example.com/patched": '["spec.targets[0].name"]' },
        ownerReferences: [{ apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster", name, uid }],
      },
      spec: specOf(name, endpointOf("0")),
    });
  });

interface Making {
  seconds: number;
  /** Seconds of a core, by program. */
  used: Record<string, number>;
}

/** Waits until a watch has shown so many bindings. */
async function making(rig: Rig, namespace: string, count: number, make: () => Promise<unknown>): Promise<Making> {
  const there = new Set<string>();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = await rig.client.watch(bindingPath(namespace), ({ metadata }) => {
    there.add(metadata.name);
    if (there.size >= count) resolve();
  });
  const before = await processorSeconds(rig);
  const from = performance.now();
  await make();
  await promise;
  const seconds = (performance.now() - from) / 1_000;
  const after = await processorSeconds(rig);
  stop();
  const used = Object.entries(after).map(([name, sum]) => [name, sum - (before[name] ?? 0)]);
  return { seconds, used: Object.fromEntries(used) };
}

function reportMaking({ table }: Rig, count: number, theirs: Making, own: Making): void {
  const rate = ({ seconds }: Making) => `${(count / seconds).toFixed(0)} /s`;
  table.row(`${count} bindings, until all exist`, rate(theirs), rate(own));
  table.row(
    "  share of the floor's rate",
    "",
    `${((100 * theirs.seconds) / own.seconds).toFixed(0)} %`,
    "60 % at least",
  );
  for (const name of Object.keys(own.used)) {
    const each = ({ used }: Making) => ms((1_000 * (used[name] ?? 0)) / count);
    table.row(`  processor of ${name} until then, for each`, each(theirs), each(own));
  }
}

async function measureCost({ controller, table }: Rig, count: number): Promise<void> {
  await controller.process.quiet();
  const { resident, most } = await controller.process.memory();
  table.ours(`resident: ${count} claims and bindings`, `${resident} (most: ${most})`, "320 MB");
  const streams = await controller.metric("inlay_watch_streams", 'state="synced"');
  table.ours(`watch streams of the controller, for ${count} bindings of one account`, String(streams), "10 at most");
}

/** The Secret that all bindings read changes. */
async function measureReads(rig: Rig, count: number): Promise<void> {
  const { client, table } = rig;
  const before = await readsOfSecrets(rig);
  const changed = new Set<string>();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = await client.watch(harborPath(OURS), (object) => {
    if (accessKeyOf(object) === "key-1") changed.add(object.metadata.name);
    if (changed.size >= count) resolve();
  });
  const from = performance.now();
  await client.merge(secretPath(OURS, "bucket"), { stringData: { id: "key-1" } });
  await promise;
  const seconds = (performance.now() - from) / 1_000;
  stop();
  const reads = (await readsOfSecrets(rig)) - before;
  table.ours(
    `reads of a Secret that changes, for ${count} bindings, in ${seconds.toFixed(0)} s`,
    String(reads),
    "1 /s",
  );
}

async function readsOfSecrets({ cluster }: Rig): Promise<number> {
  const text = (await cluster.kubectl("get", "--raw", "/metrics")).stdout;
  const isRead = (line: string) =>
    line.startsWith("apiserver_request_total{") && line.includes('resource="secrets"') && line.includes('verb="GET"');
  return text
    .split("\n")
    .filter(isRead)
    .reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
}

async function measureRestart(rig: Rig, count: number): Promise<void> {
  const { audit, controller, table } = rig;
  await controller.process.quiet();
  await controller.stop();
  const mark = await audit.mark();
  const from = performance.now();
  await controller.start();
  const seconds = ((await controller.process.quiet()) - from) / 1_000;
  table.ours(`restart with ${count} claims, until it is quiet`, `${seconds.toFixed(1)} s`);
  const writes = await audit.controllerWritesSince(mark);
  table.ours("  writes to the cluster", String(writes.length), "0");
  const { resident, most } = await controller.process.memory();
  table.ours("  resident then", `${resident} (most: ${most})`, "320 MB");
}

async function measureChanges(rig: Rig, uids: ReadonlyMap<string, string>, count: number): Promise<void> {
  await makeDirectly(rig, uids, count);
  await rig.controller.process.quiet();
  const namespaces = { floor: FLOOR, ours: OURS };
  const course: Course = {
    what: "claim's change",
    count,
    watched: (side) => bindingPath(namespaces[side]),
    change: (side, i, value) => ({
      path: harborPath(namespaces[side], `h-${i}`),
      patch: { metadata: { annotations: { [ENDPOINT]: endpointOf(value) } } },
    }),
    dependents: (side, i, value) => [
      {
        path: bindingPath(namespaces[side], `h-${i}-s3`),
        patch: { spec: { targets: specOf(`h-${i}`, endpointOf(value)).targets } },
      },
    ],
    textOf: ({ spec }) => spec.targets[0].fields[1].template,
  };
  reportLatency(rig, course.what, await measureLatency(rig, course, rig.of(300)), 2);
}
