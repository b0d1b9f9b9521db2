/** The cost of many Secrets, bindings and namespaces: memory, watches, a restart, and idling. */
import { setTimeout as sleep } from "node:timers/promises";
import { atOnce } from "./cluster.ts";
import { type BuiltController, NpxController } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { dropBindings, makeBindings, makeHarbors, makeNamespace, makeSecrets } from "./world.ts";

const IDLE_SECONDS = 30;

/** Resident memory with many Secrets and some bindings in one namespace, watched by its account or by the controller. */
export async function measureMemory(rig: Rig): Promise<void> {
  const namespace = "memory";
  const [secrets, bindings] = [rig.of(10_000), rig.of(1_000)];
  await makeNamespace(rig.client, namespace);
  await makeSecrets(rig.client, () => namespace, secrets);
  await makeHarbors(rig.client, () => namespace, bindings);
  await makeBindings(rig.client, () => namespace, bindings);
  const byNpx = new NpxController(rig.cluster, "--log-level", "info");
  const ways: [how: string, controller: BuiltController][] = [
    ["as its account", rig.controller],
    ["as its account, by npx inlay controller", byNpx],
    ["kinds opted in", rig.controller],
  ];
  for (const [how, controller] of ways) {
    await optIn(rig, how === "kinds opted in");
    await controller.start();
    await rig.synced(bindings);
    await controller.process.quiet();
    await reportMemory(rig, `${secrets} Secrets of 1 KiB, ${bindings} bindings, ${how}`, controller);
    await controller.stop();
  }
  await optIn(rig, false);
  await dropBindings(rig.client);
}

/** One binding in each of many namespaces, with everything watched by their accounts. */
export async function measureTenants(rig: Rig): Promise<void> {
  const [tenants, secrets] = [rig.of(1_000), rig.of(10_000)];
  const namespaceOf = (i: number) => `tenant-${i % tenants}`;
  await atOnce(tenants, 20, (i) => makeNamespace(rig.client, namespaceOf(i)));
  await makeSecrets(rig.client, namespaceOf, secrets);
  await makeHarbors(rig.client, namespaceOf, tenants);
  await makeBindings(rig.client, namespaceOf, tenants);
  const before = await openWatches(rig);
  const from = performance.now();
  await rig.controller.start();
  await rig.synced(tenants);
  const seconds = (performance.now() - from) / 1_000;
  rig.table.ours(`${tenants} accounts of ${tenants} namespaces, from start to all synced`, `${seconds.toFixed(1)} s`);
  await rig.controller.process.quiet();
  rig.table.ours("  open watches", String((await openWatches(rig)) - before));
  await reportMemory(rig, `${secrets} Secrets of 1 KiB, ${tenants} bindings, as their accounts`);
  await rig.controller.stop();
  await dropBindings(rig.client);
}

/** A restart with many bindings without changes, and the load when there is nothing to do. */
export async function measureRestart(rig: Rig): Promise<void> {
  const namespace = "restart";
  const count = rig.of(10_000);
  await makeNamespace(rig.client, namespace);
  await makeSecrets(rig.client, () => namespace, count);
  await makeHarbors(rig.client, () => namespace, count);
  await makeBindings(rig.client, () => namespace, count);
  const first = performance.now();
  await rig.controller.start();
  await rig.synced(count);
  rig.table.ours(`first sync of ${count} bindings`, `${((performance.now() - first) / 1_000).toFixed(1)} s`);
  await rig.controller.process.quiet();
  await rig.controller.stop();

  const mark = await rig.audit.mark();
  const from = performance.now();
  await rig.controller.start();
  const seconds = ((await rig.controller.process.quiet()) - from) / 1_000;
  rig.table.ours(`restart with ${count} bindings, until it is quiet`, `${seconds.toFixed(1)} s`);
  const writes = await rig.audit.controllerWritesSince(mark);
  rig.table.ours("  writes to the cluster", String(writes.length), "0");
  await reportMemory(rig, `${count} bindings`);
  const before = await rig.controller.process.cpuSeconds();
  await sleep(IDLE_SECONDS * 1_000);
  const share = ((await rig.controller.process.cpuSeconds()) - before) / IDLE_SECONDS;
  rig.table.ours(`idle with ${count} bindings, of one core`, `${(share * 100).toFixed(2)} %`, "under 1 %");
  await rig.controller.stop();
}

async function reportMemory(rig: Rig, what: string, controller = rig.controller): Promise<void> {
  const { resident, most } = await controller.process.memory();
  const aim = what.includes("1 KiB") ? "150 MB" : "";
  rig.table.ours(`resident: ${what}`, `${resident} (most: ${most})`, aim);
}

/** Allows the controller to watch Secrets and HarborClusters, as a platform may, or withdraws that. */
async function optIn({ client }: Rig, open: boolean): Promise<void> {
  await client.apply("/apis/rbac.authorization.k8s.io/v1/clusterroles/bench-shared", {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "bench-shared", labels: { "inlay.dev/aggregate-to-controller": "true" } },
    rules: open
      ? [
          { apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] },
          { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["list", "watch"] },
        ]
      : [],
  });
  // Waits until the controller manager has aggregated the role.
  await sleep(2_000);
}

async function openWatches({ cluster }: Rig): Promise<number> {
  const text = (await cluster.kubectl("get", "--raw", "/metrics")).stdout;
  const lines = text.split("\n").filter((line) => /^apiserver_longrunning_requests\{.*verb="WATCH"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
}
