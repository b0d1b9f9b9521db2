/**
 * `npm run bench`: measures Inlay beside the floor, which is a client that writes the Secret and then patches the target
 * itself, on the same API server in the same run. Nothing comes in; a table goes out.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AuditLog } from "../test/controller/audit.ts";
import { ControllerProcess } from "../test/controller/controller.ts";
import { AUDIT_LOG, atOnce, Client, quantile, startCluster } from "./cluster.ts";
import {
  accessKeyOf,
  bindingPath,
  harborPath,
  makeBindings,
  makeHarbors,
  makeNamespace,
  makeSecrets,
  secretPath,
} from "./world.ts";

const scale = Number(process.env["INLAY_BENCH_SCALE"] ?? 1);
const of = (count: number) => Math.max(10, Math.round(count * scale));
const SINGLE = of(200);
const BURST = of(1_000);
const RESTART = of(10_000);
const SECRETS = of(10_000);
const IDLE_MS = 20_000 * Math.min(1, scale * 4);

const rows: [string, string, string][] = [];
const row = (what: string, floor: string, ours: string) => {
  rows.push([what, floor, ours]);
  console.log(`${what.padEnd(58)} ${floor.padStart(14)} ${ours.padStart(14)}`);
};

const cluster = await startCluster();
const client = new Client(cluster);
const controller = new ControllerProcess(cluster);
const audit = new AuditLog(join(cluster.folder, AUDIT_LOG));
try {
  row("measured", "floor", "Inlay");
  await shared(false);
  await latency("bench", "of one change");
  await burst("bench");
  await restart();
  await memory("as the account of one namespace");
  await manyNamespaces();
  await shared(true);
  await controller.stop();
  await memory("kinds opted in");
} finally {
  await controller.stop();
  await client.close();
  await cluster.stop();
}

/** The time from sending the Secret's change to seeing the target changed, one after the other. */
async function latency(namespace: string, what: string): Promise<void> {
  await makeNamespace(client, namespace);
  await makeNamespace(client, "floor");
  for (const each of [namespace, "floor"]) {
    await makeSecrets(client, () => each, BURST);
    await makeHarbors(client, () => each, BURST);
  }
  await makeBindings(client, () => namespace, BURST);
  await controller.start();
  await allReady(namespace, BURST);
  const [floor, ours]: [number[], number[]] = [[], []];
  const waiting = new Map<string, (at: number) => void>();
  const stops = await Promise.all(
    [namespace, "floor"].map((each) =>
      client.watch(harborPath(each), (object, at) => waiting.get(`${each}/${accessKeyOf(object)}`)?.(at)),
    ),
  );
  const change = async (each: string, i: number, round: number): Promise<number> => {
    const value = `key-${i}-${round}`;
    const seen = new Promise<number>((resolve) => waiting.set(`${each}/${value}`, resolve));
    const from = performance.now();
    await client.merge(secretPath(each, `s-${i}`), { stringData: { accessKeyID: value } });
    if (each === "floor") await patchTarget(each, i, value);
    const took = (await seen) - from;
    waiting.clear();
    return took;
  };
  for (let i = 0; i < SINGLE; i++) {
    floor.push(await change("floor", i % BURST, i + 1));
    ours.push(await change(namespace, i % BURST, i + 1));
  }
  for (const stop of stops) stop();
  for (const q of [0.5, 0.99]) {
    row(`latency ${what}, p${q * 100}`, `${quantile(floor, q).toFixed(1)} ms`, `${quantile(ours, q).toFixed(1)} ms`);
  }
  row("  ratio of the medians (aim: 2 at most)", "1", (quantile(ours, 0.5) / quantile(floor, 0.5)).toFixed(2));
}

/** All Secrets change at once; the rate at which the targets follow. */
async function burst(namespace: string): Promise<void> {
  const rates: number[] = [];
  for (const each of ["floor", namespace]) {
    const left = new Set(Array.from({ length: BURST }, (_, i) => `burst-${i}`));
    let done = () => {};
    const all = new Promise<void>((resolve) => {
      done = resolve;
    });
    const stop = await client.watch(harborPath(each), (object) => {
      left.delete(accessKeyOf(object) ?? "");
      if (left.size === 0) done();
    });
    const from = performance.now();
    await atOnce(BURST, 50, async (i) => {
      await client.merge(secretPath(each, `s-${i}`), { stringData: { accessKeyID: `burst-${i}` } });
      if (each === "floor") await patchTarget(each, i, `burst-${i}`);
    });
    await all;
    rates.push(BURST / ((performance.now() - from) / 1000));
    stop();
  }
  const [floor = 0, ours = 0] = rates;
  row(`burst of ${BURST} changes`, `${floor.toFixed(0)} /s`, `${ours.toFixed(0)} /s`);
  row("  share of the floor's rate (aim: 60 % at least)", "100 %", `${((100 * ours) / floor).toFixed(0)} %`);
}

/** A restart with many bindings and nothing changed. */
async function restart(): Promise<void> {
  const namespace = "restart";
  await makeNamespace(client, namespace);
  await makeSecrets(client, () => namespace, RESTART);
  await makeHarbors(client, () => namespace, RESTART);
  await makeBindings(client, () => namespace, RESTART);
  await allReady(namespace, RESTART);
  await controller.stop();
  const mark = await audit.mark();
  const from = performance.now();
  await controller.start();
  const seconds = ((await quiet()) - from) / 1000;
  row(`restart with ${RESTART + BURST} bindings, until it is quiet`, "", `${seconds.toFixed(1)} s`);
  row("  writes to the cluster (aim: 0)", "", String((await audit.controllerWritesSince(mark)).length));
  const cpu = await cpuSeconds();
  await sleep(IDLE_MS);
  row(
    "  idle after it, of one core (aim: under 1 %)",
    "",
    `${(((await cpuSeconds()) - cpu) / (IDLE_MS / 100000)).toFixed(2)} %`,
  );
  row("  resident memory with them", "", await resident());
}

/** Resident memory with many Secrets and 1,000 bindings. */
async function memory(how: string): Promise<void> {
  await controller.stop();
  const namespace = `memory-${how.split(" ")[0]}`;
  await dropBindings();
  await makeNamespace(client, namespace);
  await makeSecrets(client, () => namespace, SECRETS);
  await makeHarbors(client, () => namespace, BURST);
  await makeBindings(client, () => namespace, BURST);
  await controller.start();
  await allReady(namespace, BURST);
  await quiet();
  row(`resident with ${SECRETS} Secrets and ${BURST} bindings, ${how} (aim: 150 MB)`, "", await resident());
}

/** One binding in each of 1,000 namespaces, everything watched as their accounts. */
async function manyNamespaces(): Promise<void> {
  await controller.stop();
  await dropBindings();
  const namespaceOf = (i: number) => `tenant-${i}`;
  await atOnce(BURST, 20, (i) => makeNamespace(client, namespaceOf(i)));
  await makeSecrets(client, namespaceOf, BURST);
  await makeHarbors(client, namespaceOf, BURST);
  await makeBindings(client, namespaceOf, BURST);
  const from = performance.now();
  await controller.start();
  await allReady("", BURST);
  row(
    `${BURST} accounts of ${BURST} namespaces: until all are synced`,
    "",
    `${((performance.now() - from) / 1000).toFixed(1)} s`,
  );
  row("  resident", "", await resident());
  row("  open watches", "", String(await openWatches()));
}

/** Opens Secrets and HarborClusters to the controller, or closes them. */
async function shared(open: boolean): Promise<void> {
  if (!open) return;
  await client.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
    metadata: { name: "bench-shared", labels: { "inlay.dev/aggregate-to-controller": "true" } },
    rules: [
      { apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] },
      { apiGroups: ["goharbor.io"], resources: ["harborclusters"], verbs: ["list", "watch"] },
    ],
  });
  await sleep(2_000);
}

async function patchTarget(namespace: string, i: number, value: string): Promise<void> {
  const s3 = { accesskey: value, regionendpoint: `https://${value}.example.com` };
  await client.merge(harborPath(namespace, `h-${i}`), { spec: { storage: { spec: { s3 } } } });
}

/** Waits until so many bindings of a namespace, or of all, are Ready. */
async function allReady(namespace: string, count: number): Promise<void> {
  const path = namespace === "" ? "/apis/inlay.dev/v1alpha1/secretbindings" : bindingPath(namespace);
  for (;;) {
    const { items } = await client.send("GET", path);
    const ready = items.filter((item: { status?: { synced?: string } }) => item.status?.synced === "1/1").length;
    if (ready >= count) return;
    await sleep(250);
  }
}

async function dropBindings(): Promise<void> {
  await cluster.kubectl("delete", "secretbindings", "--all", "--all-namespaces", "--wait=true");
}

/** Waits until the controller used no processor for two seconds, and returns since when. */
async function quiet(): Promise<number> {
  let since = performance.now();
  for (let last = await cpuSeconds(); performance.now() - since < 2_000; ) {
    await sleep(250);
    const now = await cpuSeconds();
    if (now - last > 0.01) since = performance.now();
    last = now;
  }
  return since;
}

async function cpuSeconds(): Promise<number> {
  const fields = (await readFile(`/proc/${controller.pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function resident(): Promise<string> {
  const status = await readFile(`/proc/${controller.pid}/status`, "utf8");
  return `${(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024).toFixed(0)} MB`;
}

async function openWatches(): Promise<number> {
  const text = (await cluster.kubectl("get", "--raw", "/metrics")).stdout;
  const lines = text.split("\n").filter((line) => /^apiserver_longrunning_requests\{.*verb="WATCH"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
}
