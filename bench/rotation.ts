/**
 * How fast a changed Secret arrives, one at a time and all at once, beside the floor: a client that writes the Secret and
 * then patches the target itself. The two take turns, and a change is over when a watch of the targets shows its value.
 */
import { atOnce } from "./cluster.ts";
import { Process } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median, ms, quantile, spread } from "./table.ts";
import {
  accessKeyOf,
  dropBindings,
  harborPath,
  makeBindings,
  makeHarbors,
  makeNamespace,
  makeSecrets,
  secretPath,
} from "./world.ts";

const OURS = "bench";
const FLOOR = "floor";
const ROUNDS = 3;
const WRITERS = 50;

export async function measureRotations(rig: Rig): Promise<void> {
  const count = rig.of(1_000);
  for (const namespace of [FLOOR, OURS]) {
    await makeNamespace(rig.client, namespace);
    await makeSecrets(rig.client, () => namespace, count);
    await makeHarbors(rig.client, () => namespace, count);
  }
  await makeBindings(rig.client, () => OURS, count);
  await rig.controller.start();
  await rig.synced(count);
  await rig.controller.process.quiet();
  await measureLatency(rig, count);
  await measureBurst(rig, count);
  await rig.controller.stop();
  await dropBindings(rig.client);
}

/** From sending the Secret's change to seeing the target's, one after the other. */
async function measureLatency(rig: Rig, count: number): Promise<void> {
  const arrivals = new Map<string, (at: number) => void>();
  const stops = await Promise.all(
    [FLOOR, OURS].map((namespace) =>
      rig.client.watch(harborPath(namespace), (object, at) => arrivals.get(accessKeyOf(object) ?? "")?.(at)),
    ),
  );
  const timed = async (namespace: string, i: number, value: string): Promise<number> => {
    const { promise, resolve } = Promise.withResolvers<number>();
    arrivals.set(value, resolve);
    const from = performance.now();
    await change(rig, namespace, i, value);
    const took = (await promise) - from;
    arrivals.delete(value);
    return took;
  };
  const floor: number[] = [];
  const ours: number[] = [];
  for (let i = 0; i < rig.of(300); i++) {
    floor.push(await timed(FLOOR, i % count, `floor-${i}`));
    ours.push(await timed(OURS, i % count, `ours-${i}`));
  }
  for (const stop of stops) stop();
  for (const q of [0.5, 0.99])
    rig.table.row(`latency of a change, p${q * 100}`, ms(quantile(floor, q)), ms(quantile(ours, q)));
  const odd = median(floor.filter((_, i) => i % 2 === 1));
  const even = median(floor.filter((_, i) => i % 2 === 0));
  rig.table.row(
    "  ratio of the medians (floor: of its odd to its even ones)",
    (odd / even).toFixed(2),
    (median(ours) / median(floor)).toFixed(2),
    "2 at most",
  );
}

interface Round {
  namespace: string;
  /** Changes in a second. */
  rate: number;
  /** Milliseconds of a core for a change, by program. */
  used: Record<string, number>;
}

/** All Secrets change at once: how many targets follow in a second. */
async function measureBurst(rig: Rig, count: number): Promise<void> {
  const rounds: Round[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    for (const namespace of [FLOOR, OURS]) {
      // What the controller still does of the last round would be put on the next.
      await rig.controller.process.quiet();
      const before = await processorSeconds(rig);
      const rate = count / (await burst(rig, namespace, count, `burst-${i}`));
      const after = await processorSeconds(rig);
      const used = Object.entries(after).map(([name, sum]) => [name, (1_000 * (sum - (before[name] ?? 0))) / count]);
      rounds.push({ namespace, rate, used: Object.fromEntries(used) });
    }
  }
  const of = (namespace: string) => rounds.filter((round) => round.namespace === namespace);
  const [floor, ours] = [of(FLOOR), of(OURS)].map((each) => each.map(({ rate }) => rate)) as [number[], number[]];
  rig.table.row(`burst of ${count} changes, median of ${ROUNDS}`, spread(floor, "/s"), spread(ours, "/s"));
  const share = (100 * median(ours)) / median(floor);
  rig.table.row("  share of the floor's rate", "", `${share.toFixed(0)} %`, "60 % at least");
  for (const name of Object.keys(programs(rig))) {
    const used = (namespace: string) => ms(median(of(namespace).map((round) => round.used[name] ?? 0)));
    rig.table.row(`  processor of ${name} for a change`, used(FLOOR), used(OURS));
  }
}

/** Seconds until all targets of a namespace hold their new values. */
async function burst(rig: Rig, namespace: string, count: number, value: string): Promise<number> {
  const left = new Set(Array.from({ length: count }, (_, i) => `${value}-${i}`));
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = await rig.client.watch(harborPath(namespace), (object) => {
    left.delete(accessKeyOf(object) ?? "");
    if (left.size === 0) resolve();
  });
  const from = performance.now();
  await atOnce(count, WRITERS, (i) => change(rig, namespace, i, `${value}-${i}`));
  await promise;
  const seconds = (performance.now() - from) / 1_000;
  stop();
  return seconds;
}

/** Changes a Secret, and in the floor's namespace the target too. */
async function change({ client }: Rig, namespace: string, i: number, value: string): Promise<void> {
  await client.merge(secretPath(namespace, `s-${i}`), { stringData: { accessKeyID: value } });
  if (namespace !== FLOOR) return;
  const s3 = { accesskey: value, regionendpoint: `https://${value}.example.com` };
  await client.merge(harborPath(namespace, `h-${i}`), { spec: { storage: { spec: { s3 } } } });
}

/** What shares the processor: the servers, the controller, and this program. */
function programs({ cluster, controller }: Rig): Record<string, Process> {
  return {
    "kube-apiserver": new Process(cluster.processes.get("kube-apiserver")?.pid),
    etcd: new Process(cluster.processes.get("etcd")?.pid),
    "the controller": controller.process,
    "the benchmark": new Process(process.pid),
  };
}

async function processorSeconds(rig: Rig): Promise<Record<string, number>> {
  const seconds: Record<string, number> = {};
  for (const [name, program] of Object.entries(programs(rig))) seconds[name] = await program.cpuSeconds();
  return seconds;
}
