/**
 * compositions/vault-sync-status with many objects of few paths: the requests to Vault, the memory, how soon a change has restarted all
 * Deployments of a path, and the writes after a restart.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startVault, type Vault } from "../test/control-plane/vault.ts";
import { sumIn } from "../test/controller/controller.ts";
import { objectsIn } from "../test/controller/manifests.ts";
import { connectionTo } from "../test/controller/vault-sync.ts";
import { deployment } from "../test/controller/workloads.ts";
import { type AnyObject, atOnce } from "./cluster.ts";
import { BuiltController } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median, ms } from "./table.ts";
import { deploymentPath, dropBindings } from "./world.ts";

const root = join(import.meta.dirname, "..");
const FOLDER = join(root, "compositions", "vault-sync-status");
const HOME = "vault-sync";
const MOUNT = "kv";
const NAMESPACES = 10;
const PATHS = 50;
const WIDTH = 20;
const REFRESH = "5s";
const COUNTED_MINUTES = 2;
/** Paths that change one after the other. */
const CHANGES = 5;
const READS = ["data", "metadata", "health", "login", "lookup", "renew"];
const COMPOSITION = "/apis/inlay.dev/v1alpha1/bindingcompositions/vault-sync-status";

const namespaceOf = (i: number) => `sync-${i % NAMESPACES}`;
const pathOf = (i: number) => `shared/s-${i % PATHS}`;
/** The objects of a namespace, or of all. */
const claimsPath = (namespace = "") =>
  `/apis/stable.example.com/v1/${namespace && `namespaces/${namespace}/`}vaultsyncstatus`;

export async function measureVaultSync(rig: Rig): Promise<void> {
  const vault = await startVault();
  const config = join(vault.folder, "controller.yaml");
  const kind = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };
  await writeFile(config, JSON.stringify({ ...kind, vault: { addresses: ["http://127.0.0.1"] } }));
  const controller = new BuiltController(rig.cluster, "--log-level", "info", "--config", config);
  try {
    await vault.enableKv(MOUNT);
    await install(rig, vault);
    const count = rig.of(1_000);
    await makeObjects(rig, vault, count);
    await measure(rig, vault, controller, count);
  } finally {
    await controller.stop();
    await rig.client.merge(COMPOSITION, { metadata: { finalizers: null } });
    await rig.client.send("DELETE", COMPOSITION);
    await dropBindings(rig.client);
    await vault.stop();
  }
}

/** The manifests that the page installs, without TLS, and with another `refresh`. */
async function install({ cluster }: Rig, vault: Vault): Promise<void> {
  const optional = join(root, "deploy", "manifests", "optional", "compositions.yaml");
  for (const file of [optional, join(FOLDER, "crd"), join(FOLDER, "account.yaml")])
    await cluster.kubectl("apply", `--filename=${file}`);
  await vault.writePolicy("vault-sync", `path "+/metadata/*" { capabilities = ["read", "list"] }`);
  const token = await vault.createToken(["vault-sync"]);
  await cluster.kubectl("wait", "--for=condition=Established", "crd/vaultsyncstatus.stable.example.com");
  const [composition] = await objectsIn(join(FOLDER, "composition.yaml"));
  composition.spec.bindings[0].base.spec.sources[0].vault.refresh = REFRESH;
  for (const object of [...connectionTo(vault.address, token), composition])
    await cluster.kubectlWith({ stdin: JSON.stringify(object) }, "apply", "--filename=-");
}

/** Deployments without pods, an object for each, and the present time stamps that their operator left. */
async function makeObjects({ client, cluster }: Rig, vault: Vault, count: number): Promise<void> {
  for (let i = 0; i < NAMESPACES; i++) {
    const namespace = namespaceOf(i);
    await client.send("POST", "/api/v1/namespaces", { metadata: { name: namespace } });
    const account = `--serviceaccount=${HOME}:inlay`;
    await cluster.kubectl(
      "create",
      "rolebinding",
      "inlay-rollouts",
      "-n",
      namespace,
      "--clusterrole=inlay-rollouts",
      account,
    );
  }
  const stamps = new Map<string, string>();
  for (let i = 0; i < PATHS; i++) stamps.set(pathOf(i), await change(vault, pathOf(i)));
  await atOnce(count, WIDTH, async (i) => {
    const [namespace, name] = [namespaceOf(i), `d-${i}`];
    await client.send("POST", deploymentPath(namespace), deployment(name, { replicas: 0 }));
    await client.send("POST", claimsPath(namespace), {
      apiVersion: "stable.example.com/v1",
      kind: "VaultSyncStatus",
      metadata: { name },
      spec: {
        deployName: name,
        deployNamespace: namespace,
        secretEngine: MOUNT,
        secretPath: pathOf(i),
        timeStamp: stamps.get(pathOf(i)),
      },
    });
  });
}

/** Returns the time of the written version. */
const change = async (vault: Vault, path: string): Promise<string> =>
  (await vault.api("POST", `${MOUNT}/data/${path}`, { data: { changed: `${Date.now()}` } })).data.created_time;

async function measure(rig: Rig, vault: Vault, controller: BuiltController, count: number): Promise<void> {
  const { table } = rig;
  await controller.start();
  await rig.synced(count);
  await sleep(5_000);
  await controller.stop();
  const mark = await rig.audit.mark();
  await controller.start();
  await rig.synced(count);
  // Every path has been requested by then.
  await sleep(8_000);
  const writes = await rig.audit.controllerWritesSince(mark);
  const requests = async () => {
    const page = await controller.page("/metrics");
    return READS.reduce((sum, each) => sum + sumIn(page, "inlay_vault_requests_total", `operation="${each}"`), 0);
  };
  const before = await requests();
  await sleep(COUNTED_MINUTES * 60_000);
  const perMinute = ((await requests()) - before) / COUNTED_MINUTES;
  table.ours(`requests to Vault a minute, ${count} objects, ${PATHS} paths at ${REFRESH}`, perMinute.toFixed(0), "600");
  const { resident, most } = await controller.process.memory();
  table.ours("  resident", `${resident} (most: ${most})`);
  table.ours("  writes of a restart", String(writes.length), "0");
  const took: number[] = [];
  for (let i = 0; i < CHANGES; i++) took.push(await measureChange(rig, vault, i));
  const each = Math.round(count / PATHS);
  table.ours(`  from a write in Vault to the last time stamp of ${each} objects, median`, ms(median(took)), "6.5 s");
}

/** From a write until every object of the path has its time. Deployments without pods roll out at once. */
async function measureChange({ client }: Rig, vault: Vault, path: number): Promise<number> {
  const stamps = new Map<string, string>();
  const { promise, resolve } = Promise.withResolvers<number>();
  let stamp = "";
  const check = (at: number) => {
    if (stamp !== "" && [...stamps.values()].every((each) => each === stamp)) resolve(at);
  };
  const stop = await client.watch(claimsPath(), ({ metadata, spec }: AnyObject, at) => {
    if (spec.secretPath !== pathOf(path)) return;
    stamps.set(metadata.uid, spec.timeStamp);
    check(at);
  });
  const from = performance.now();
  stamp = await change(vault, pathOf(path));
  check(performance.now());
  const last = await promise;
  stop();
  return last - from;
}
