/**
 * Sources from a real Vault, next to a client that polls Vault at the same interval and writes the target itself: how soon a field follows,
 * the requests of many bindings, their memory, and the writes after a restart.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startVault, type Vault } from "../test/control-plane/vault.ts";
import { sumIn } from "../test/controller/controller.ts";
import { type AnyObject, atOnce, type Client } from "./cluster.ts";
import { BuiltController } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median, ms, quantile } from "./table.ts";
import {
  accessKeyOf,
  bindingPath,
  dropBindings,
  harborPath,
  makeHarbors,
  makeNamespace,
  makeSecrets,
} from "./world.ts";

const MOUNT = "kv";
const HOME = "vault-home";
const REFRESH_MS = 1_000;
/** How often a value changes to measure the latency. */
const CHANGES = 60;
const WIDTH = 20;
/** Namespaces of many bindings, each with its own login. */
const NAMESPACES = 10;
const PATHS_OF_EACH = 5;
const COUNTED_MINUTES = 3;
const READS = ["data", "metadata", "health", "login", "lookup"];

export async function measureVault(rig: Rig): Promise<void> {
  const vault = await startVault();
  const config = join(vault.folder, "controller.yaml");
  const addresses = ["http://127.0.0.1"];
  const kind = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };
  await writeFile(config, JSON.stringify({ ...kind, vault: { addresses } }));
  const controller = new BuiltController(rig.cluster, "--log-level", "info", "--config", config);
  try {
    await vault.enableKv(MOUNT);
    await vault.enableKubernetesAuth(rig.cluster);
    await measureLatency(rig, vault, controller);
    await measureMany(rig, vault, controller);
  } finally {
    await controller.stop();
    await dropBindings(rig.client);
    await vault.stop();
  }
}

const connectionPath = (namespace: string) => `/apis/inlay.dev/v1alpha1/namespaces/${namespace}/vaultconnections`;

/** A namespace whose account logs in to Vault, with a connection. */
async function makeVaultNamespace({ client }: Rig, vault: Vault, namespace: string): Promise<void> {
  await makeNamespace(client, namespace);
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const rules = [
    { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: ["inlay"], verbs: ["create"] },
  ];
  await client.send("POST", `${rbac}/roles`, { metadata: { name: "login" }, rules });
  await client.send("POST", `${rbac}/rolebindings`, {
    metadata: { name: "login" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "login" },
    subjects: [{ kind: "ServiceAccount", name: "inlay", namespace }],
  });
  const parts = ["data", "metadata"].map((part) => `path "${MOUNT}/${part}/${namespace}/*" {capabilities=["read"]}`);
  await vault.writePolicy(namespace, parts.join("\n"));
  const role = { accounts: ["inlay"], namespaces: [namespace], audience: "vault", policies: [namespace], ttl: "1h" };
  await vault.writeKubernetesRole(namespace, role);
  await client.send("POST", connectionPath(namespace), {
    apiVersion: "inlay.dev/v1alpha1",
    kind: "VaultConnection",
    metadata: { name: "vault" },
    spec: {
      address: vault.address,
      auth: { kubernetes: { role: "{namespace}" } },
      paths: [`${MOUNT}/{namespace}/*`],
    },
  });
}

const bindingOf = (name: string, harbor: string, source: object) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name },
  spec: {
    acknowledge: ["ReadableCopies"],
    sources: [{ name: "bucket", ...source }],
    targets: [
      {
        apiVersion: "goharbor.io/v1beta1",
        kind: "HarborCluster",
        name: harbor,
        fields: [{ path: "spec.storage.spec.s3.accesskey", from: { source: "bucket", key: "accessKeyID" } }],
      },
    ],
  },
});

const fromVault = (path: string, refresh: string) => ({
  vault: { connection: { name: "vault" }, refresh, data: { mount: MOUNT, path } },
});

/** From the answer to a write in Vault until the field has the value, with a poll once a second on both sides. */
async function measureLatency(rig: Rig, vault: Vault, controller: BuiltController): Promise<void> {
  const { client, table } = rig;
  await makeVaultNamespace(rig, vault, HOME);
  await makeHarbors(client, () => HOME, 2);
  const path = `${HOME}/s3`;
  await vault.putKv(MOUNT, path, { accessKeyID: "key-0" });
  await client.send("POST", bindingPath(HOME), bindingOf("latency", "h-0", fromVault(path, "1s")));
  const stop = new AbortController();
  const floor = pollAndWrite(client, vault, path, "h-1", stop.signal);
  await controller.start();
  const seen = new Map<string, number>();
  const waiting = new Map<string, (at: number) => void>();
  const stopWatch = await client.watch(harborPath(HOME), (object, at) => {
    const key = `${object.metadata.name} ${accessKeyOf(object)}`;
    if (!seen.has(key)) seen.set(key, at);
    waiting.get(key)?.(at);
  });
  const until = (key: string) =>
    new Promise<number>((resolve) => {
      const at = seen.get(key);
      if (at === undefined) waiting.set(key, resolve);
      else resolve(at);
    });
  await Promise.all([until("h-0 key-0"), until("h-1 key-0")]);
  const took: Record<"h-0" | "h-1", number[]> = { "h-0": [], "h-1": [] };
  for (let change = 1; change <= rig.of(CHANGES); change++) {
    // At a random moment of the interval.
    await sleep(Math.random() * REFRESH_MS);
    await vault.putKv(MOUNT, path, { accessKeyID: `key-${change}` });
    const from = performance.now();
    const [ours, theirs] = await Promise.all([until(`h-0 key-${change}`), until(`h-1 key-${change}`)]);
    took["h-0"].push(ours - from);
    took["h-1"].push(theirs - from);
  }
  stop.abort();
  stopWatch();
  await floor;
  table.row(
    "from a write in Vault to the field, both poll once a second, median",
    ms(median(took["h-1"])),
    ms(median(took["h-0"])),
    "1 s",
  );
  table.row("  95th percentile", ms(quantile(took["h-1"], 0.95)), ms(quantile(took["h-0"], 0.95)));
  await controller.stop();
  await dropBindings(client);
}

/** A simple client for exactly this purpose: it compares the version, reads, and patches. */
async function pollAndWrite(client: Client, vault: Vault, path: string, harbor: string, signal: AbortSignal) {
  let version: unknown;
  while (!signal.aborted) {
    const from = performance.now();
    const { data } = await vault.api("GET", `${MOUNT}/metadata/${path}`);
    if (data.current_version !== version) {
      const answer: AnyObject = await vault.api("GET", `${MOUNT}/data/${path}`);
      version = answer.data.metadata.version;
      const s3 = { accesskey: answer.data.data.accessKeyID };
      await client.merge(harborPath(HOME, harbor), { spec: { storage: { spec: { s3 } } } });
    }
    await sleep(Math.max(0, REFRESH_MS - (performance.now() - from)));
  }
}

/** Many bindings of few paths at the usual interval, next to as many bindings of Secrets. */
async function measureMany(rig: Rig, vault: Vault, controller: BuiltController): Promise<void> {
  const { client, table } = rig;
  const count = rig.of(1_000);
  const namespaceOf = (i: number) => `vault-${i % NAMESPACES}`;
  const paths = NAMESPACES * PATHS_OF_EACH;
  for (let i = 0; i < NAMESPACES; i++) await makeVaultNamespace(rig, vault, namespaceOf(i));
  const data = { accessKeyID: "key-0", rest: "x".repeat(1_000) };
  const pathOf = (i: number) => `${namespaceOf(i)}/s-${Math.floor(i / NAMESPACES) % PATHS_OF_EACH}`;
  await atOnce(paths, WIDTH, (i) => vault.putKv(MOUNT, pathOf(i), data));
  await makeSecrets(client, namespaceOf, paths);
  await makeHarbors(client, namespaceOf, count);
  const bind = (sourceOf: (i: number) => object) =>
    atOnce(count, WIDTH, (i) =>
      client.send("POST", bindingPath(namespaceOf(i)), bindingOf(`b-${i}`, `h-${i}`, sourceOf(i))),
    );
  const resident = async (sourceOf: (i: number) => object) => {
    await bind(sourceOf);
    await controller.start();
    await rig.synced(count);
    // A start without changes needs only the memory of the work itself.
    await controller.process.quiet();
    await controller.stop();
    await controller.start();
    await rig.synced(count);
    await controller.process.quiet();
    return controller.process.memory();
  };
  const secrets = await resident((i) => ({ secret: { name: `s-${i % paths}` } }));
  await controller.stop();
  await dropBindings(client);
  const ours = await resident((i) => fromVault(pathOf(i), "1m"));
  table.row(
    `resident: ${count} bindings of ${paths} Secrets, and of ${paths} paths`,
    `${secrets.resident} (most: ${secrets.most})`,
    `${ours.resident} (most: ${ours.most})`,
    "25 MB more",
  );
  const requests = async () => {
    const page = await controller.page("/metrics");
    const of = (operation: string) => sumIn(page, "inlay_vault_requests_total", `operation="${operation}"`);
    return { reads: READS.reduce((sum, each) => sum + of(each), 0), renewals: of("renew") };
  };
  const before = await requests();
  await sleep(COUNTED_MINUTES * 60_000);
  const after = await requests();
  const perMinute = (after.reads - before.reads) / COUNTED_MINUTES;
  const renewals = after.renewals - before.renewals;
  table.ours(
    `requests to Vault a minute, of ${count} bindings and ${paths} paths at 1m`,
    perMinute.toFixed(0),
    `60, besides renewals (${renewals})`,
  );
  await controller.stop();
  const mark = await rig.audit.mark();
  await controller.start();
  await controller.process.quiet();
  // Every path has been requested again by then.
  await sleep(5_000);
  const writes = await rig.audit.controllerWritesSince(mark);
  table.ours("  writes of a restart", String(writes.length), "0");
}
