/**
 * How far one active replica goes: the first sync and bursts of changes with more and more bindings, next to a client that does the same
 * requests. Says which limit a burst meets: the one core of the controller, or the API server.
 */
import { availableParallelism } from "node:os";
import { type Course, compareBurst, type Round } from "./beside.ts";
import { atOnce } from "./cluster.ts";
import { Process } from "./processes.ts";
import type { Rig } from "./rig.ts";
import {
  accessKeyOf,
  bindingPath,
  dropBindings,
  harborPath,
  makeBindings,
  makeHarbors,
  makeNamespace,
  makeSecrets,
  secretPath,
} from "./world.ts";

const STEPS = [1_000, 5_000, 10_000, 20_000];
const BURST = 1_000;
const WIDTH = 50;
/** Above this share, a core counts as full: sampling and the kernel take the rest. */
const FULL = 0.9;

export async function measureThroughput(rig: Rig): Promise<void> {
  for (const step of STEPS) await measureStep(rig, rig.of(step));
}

async function measureStep(rig: Rig, count: number): Promise<void> {
  const { client, controller, table } = rig;
  const [floor, ours] = [`floor-of-${count}`, `bindings-${count}`];
  const burst = Math.min(count, rig.of(BURST));
  table.note(`${count} bindings of one namespace; bursts of ${burst} changes:`);
  for (const [namespace, size] of [
    [floor, burst],
    [ours, count],
  ] as const) {
    await makeNamespace(client, namespace);
    await makeSecrets(client, () => namespace, size);
    await makeHarbors(client, () => namespace, size);
  }
  await makeBindings(client, () => floor, burst);
  const theirs = await syncDirectly(rig, floor, burst);
  await dropBindings(client);
  await makeBindings(client, () => ours, count);
  const own = await sync(rig, count);
  table.row("  first sync", `${theirs.toFixed(0)} /s`, `${(count / own.seconds).toFixed(0)} /s`);
  table.ours("  first sync, from the start of the controller", `${own.seconds.toFixed(0)} s`);
  table.ours("  busy meanwhile", busy(own.used, own.seconds));
  await controller.process.quiet();
  const rounds = await compareBurst(rig, courseOf(floor, ours, burst));
  reportLimit(rig, rounds);
  const { resident, most } = await controller.process.memory();
  table.ours("  resident", `${resident} (most: ${most})`);
  await controller.stop();
  await dropBindings(client);
}

/** Does what the first sync of a binding needs: a finalizer, a first status, the target, and the result. Returns the rate. */
async function syncDirectly({ client }: Rig, namespace: string, count: number): Promise<number> {
  const from = performance.now();
  await atOnce(count, WIDTH, async (i) => {
    const path = bindingPath(namespace, `b-${i}`);
    const { stringData: _, data } = await client.send("GET", secretPath(namespace, `s-${i}`));
    const key = Buffer.from(data.accessKeyID, "base64").toString();
    await client.merge(path, { metadata: { finalizers: ["bench.example.com/finalizer"] } });
    await client.merge(`${path}/status`, { status: { synced: "0/1" } });
    await client.apply(harborPath(namespace, `h-${i}`), {
      apiVersion: "goharbor.io/v1beta1",
      kind: "HarborCluster",
      spec: { storage: { spec: { s3: { accesskey: key, regionendpoint: `https://${key}.example.com` } } } },
    });
    await client.merge(`${path}/status`, { status: { synced: "1/1" } });
  });
  return count / ((performance.now() - from) / 1_000);
}

interface Used {
  controller: number;
  apiServer: number;
}

/** Starts the controller, and waits until all bindings are synced. */
async function sync(rig: Rig, count: number): Promise<{ seconds: number; used: Used }> {
  const apiServer = new Process(rig.cluster.processes.get("kube-apiserver")?.pid);
  const before = await apiServer.cpuSeconds();
  const from = performance.now();
  await rig.controller.start();
  await rig.synced(count);
  const seconds = (performance.now() - from) / 1_000;
  const controller = await rig.controller.process.cpuSeconds();
  return { seconds, used: { controller, apiServer: (await apiServer.cpuSeconds()) - before } };
}

function courseOf(floor: string, ours: string, count: number): Course {
  return {
    what: "change",
    floor,
    ours,
    prefix: "h",
    count,
    path: harborPath,
    textOf: accessKeyOf,
    patch: (value) => ({
      spec: { storage: { spec: { s3: { accesskey: value, regionendpoint: `https://${value}.example.com` } } } },
    }),
  };
}

const percent = (share: number) => `${(100 * share).toFixed(0)} %`;

const busy = ({ controller, apiServer }: Used, seconds: number) =>
  `controller ${percent(controller / seconds)}, API server ${percent(apiServer / seconds)} of a core`;

/** JavaScript runs on one core, so the controller is the limit when that one is full. */
function reportLimit({ table }: Rig, rounds: readonly Round[]): void {
  const shareOf = (program: string) =>
    Math.max(...rounds.map(({ rate, used }) => (rate * (used[program] ?? 0)) / 1_000));
  const [controller, apiServer] = [shareOf("the controller"), shareOf("kube-apiserver")];
  const cores = availableParallelism();
  const all = Math.max(
    ...rounds.map(({ rate, used }) => (rate * Object.values(used).reduce((sum, each) => sum + each, 0)) / 1_000),
  );
  table.ours("  busy in the burst", busy({ controller, apiServer }, 1));
  const limit =
    controller >= FULL
      ? "Inlay: its core is full"
      : all >= FULL * cores
        ? `the machine: ${percent(all / cores)} of its cores`
        : "neither: waits for answers";
  table.ours("  limit of the burst", limit);
}
