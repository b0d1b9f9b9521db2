/**
 * How far one active replica goes: the first sync and bursts of changes with more and more bindings, next to a client that does the same
 * writes. Says which limit a burst meets: the one core of the controller, or the API server.
 */
import { availableParallelism } from "node:os";
import { measureBurst, processorSeconds, type Round, reportBurst, type Used, usedSince } from "./beside.ts";
import { type AnyObject, atOnce, MERGE_PATCH } from "./cluster.ts";
import { harborPatch, makeHarborCourse } from "./course.ts";
import type { Rig } from "./rig.ts";
import { ms } from "./table.ts";
import { bindingPath, dropBindings, harborPath, makeBindings, secretPath } from "./world.ts";

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
  const namespaces = { floor: `floor-of-${count}`, ours: `bindings-${count}` };
  table.note(`${count} bindings of one namespace; bursts of ${rig.of(BURST)} changes:`);
  const whole = await makeHarborCourse(client, namespaces, count);
  const own = await sync(rig, count);
  const course = { ...whole, count: Math.min(count, rig.of(BURST)) };
  const rounds = await measureBurst(rig, course);
  const { resident, most } = await controller.process.memory();
  await controller.stop();
  await dropBindings(client);
  await makeBindings(client, () => namespaces.floor, count);
  const theirs = await syncDirectly(rig, namespaces.floor, count, own);
  await dropBindings(client);
  reportSync(rig, count, theirs, own);
  reportBurst(rig, course, rounds);
  reportLimit(rig, rounds.ours);
  table.ours("  resident", `${resident} (most: ${most})`);
}

interface Work {
  seconds: number;
  /** Milliseconds of a core for a binding, by program. */
  used: Used;
}

interface Sync extends Work {
  events: number;
  /** The last two statuses of a binding. */
  statuses: AnyObject[];
}

/** Starts the controller, and waits until all bindings are synced. */
async function sync(rig: Rig, count: number): Promise<Sync> {
  const { audit, controller } = rig;
  const statuses: AnyObject[] = [];
  const mark = await audit.mark();
  const work = await measured(rig, count, async () => {
    await controller.start();
    await rig.synced(count, ({ metadata, status }) => {
      if (metadata.name === "b-0") statuses.push(status);
    });
  });
  const writes = await audit.controllerWritesSince(mark);
  const events = writes.filter(({ resource }) => resource === "events.k8s.io/events").length;
  rig.table.ours("  writes for a binding", (writes.length / count).toFixed(2));
  return { ...work, events, statuses: statuses.slice(-2) };
}

/**
 * Does the writes of a first sync as fast as possible: a finalizer, the two statuses and the events that Inlay has written, and the target.
 * Reads only the Secret, from memory.
 */
async function syncDirectly(rig: Rig, namespace: string, count: number, { statuses, events }: Sync): Promise<Work> {
  const { client } = rig;
  return measured(rig, count, async () => {
    const synced = rig.synced(count);
    await atOnce(count, WIDTH, async (i) => {
      const path = bindingPath(namespace, `b-${i}`);
      const { data } = await client.send("GET", `${secretPath(namespace, `s-${i}`)}?resourceVersion=0`);
      const key = Buffer.from(data.accessKeyID, "base64").toString();
      const finalizer = { metadata: { finalizers: ["bench.example.com/finalizer"] } };
      let binding = await client.send("PATCH", path, finalizer, MERGE_PATCH);
      binding = await client.send("PUT", `${path}/status`, { ...binding, status: statuses[0] });
      const head = { apiVersion: "goharbor.io/v1beta1", kind: "HarborCluster" };
      await client.apply(harborPath(namespace, `h-${i}`), { ...head, ...harborPatch(key) });
      await client.send("PUT", `${path}/status`, { ...binding, status: statuses[1] });
      const isReported = Math.floor(((i + 1) * events) / count) > Math.floor((i * events) / count);
      if (isReported)
        await client.send("POST", `/apis/events.k8s.io/v1/namespaces/${namespace}/events`, eventOf(binding));
    });
    await synced;
  });
}

const eventOf = ({ apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } }: AnyObject) => ({
  metadata: { name, namespace },
  eventTime: new Date().toISOString().replace(/Z$/, "000Z"),
  reportingController: "bench.example.com/floor",
  reportingInstance: "floor",
  action: "Sync",
  reason: "Synced",
  regarding: { apiVersion, kind, namespace, name, uid, resourceVersion },
  note: `HarborCluster ${namespace}/${name} has the values of 2 fields`,
  type: "Normal",
});

async function measured(rig: Rig, count: number, work: () => Promise<void>): Promise<Work> {
  const before = await processorSeconds(rig);
  const from = performance.now();
  await work();
  return { seconds: (performance.now() - from) / 1_000, used: await usedSince(rig, before, count) };
}

function reportSync({ table }: Rig, count: number, floor: Work, ours: Sync): void {
  const rate = ({ seconds }: Work) => `${(count / seconds).toFixed(0)} /s`;
  table.row("  first sync", rate(floor), rate(ours));
  table.row("  share of the floor's rate", "", percent(floor.seconds / ours.seconds), "60 % at least");
  for (const name of Object.keys(ours.used))
    table.row(`  processor of ${name} for a binding`, ms(floor.used[name] ?? 0), ms(ours.used[name] ?? 0));
}

const percent = (share: number) => `${(100 * share).toFixed(0)} %`;

/** JavaScript runs on one core, so the controller is the limit when that one is full. */
function reportLimit({ table }: Rig, rounds: readonly Round[]): void {
  const shareOf = (program: string) =>
    Math.max(...rounds.map(({ rate, used }) => (rate * (used[program] ?? 0)) / 1_000));
  const [controller, apiServer] = [shareOf("the controller"), shareOf("kube-apiserver")];
  const cores = availableParallelism();
  const all = Math.max(
    ...rounds.map(({ rate, used }) => (rate * Object.values(used).reduce((sum, each) => sum + each, 0)) / 1_000),
  );
  table.ours("  busy in the burst", `controller ${percent(controller)}, API server ${percent(apiServer)} of a core`);
  const limit =
    controller >= FULL
      ? "Inlay: its core is full"
      : all >= FULL * cores
        ? `the machine: ${percent(all / cores)} of its cores`
        : "neither: waits for answers";
  table.ours("  limit of the burst", limit);
}
