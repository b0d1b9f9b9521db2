/** How long there is no leader when the leader of two replicas is stopped, killed or paused during its work. */
import { eventually } from "../test/controller/eventually.ts";
import { leadingSince } from "../test/controller/replicas.ts";
import { atOnce } from "./cluster.ts";
import { BuiltController } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median } from "./table.ts";
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

const NAMESPACE = "led";
/** At full scale. */
const TIMES = 10;
const WRITERS = 50;
const LEADS_WITHIN_MS = 60_000;

export async function measureFailover(rig: Rig): Promise<void> {
  const count = rig.of(500);
  const times = Math.max(2, Math.round(TIMES * Math.min(1, rig.scale)));
  await makeNamespace(rig.client, NAMESPACE);
  await makeSecrets(rig.client, () => NAMESPACE, count);
  await makeHarbors(rig.client, () => NAMESPACE, count);
  await makeBindings(rig.client, () => NAMESPACE, count);
  const replicas = [await newReplica(rig)];
  try {
    await ledSince(replicas[0] as BuiltController);
    await rig.synced(count);
    for (const [signal, what, aim] of [
      ["SIGTERM", "stopped", "2 s"],
      ["SIGKILL", "killed", "15 s"],
      ["SIGSTOP", "paused", "15 s"],
    ] as const) {
      const took: number[] = [];
      for (let i = 0; i < times; i++) {
        const [leader, standby] = [replicas.at(-1) as BuiltController, await newReplica(rig)];
        replicas.push(standby);
        const changed = await underWay(rig, count, `${what}-${i}`);
        const from = Date.now();
        leader.signal(signal);
        took.push((await ledSince(standby)) - from);
        // A paused process ends by itself when it continues. This has no effect on the others.
        leader.signal("SIGCONT");
        await leader.ended();
        await changed();
      }
      const [half, worst] = [median(took), Math.max(...took)].map((each) => `${(each / 1_000).toFixed(1)} s`);
      rig.table.ours(
        `leader ${what} among ${count} changes, until another leads, ${times} times`,
        `${half} (most: ${worst})`,
        aim,
      );
    }
  } finally {
    await Promise.all(replicas.map((replica) => replica.stop()));
  }
  await dropBindings(rig.client);
}

async function newReplica({ cluster }: Rig): Promise<BuiltController> {
  const replica = new BuiltController(cluster, "--log-level", "info", "--leader-elect");
  await replica.start();
  return replica;
}

/** When it became the leader, by its own log. */
function ledSince(replica: BuiltController): Promise<number> {
  return eventually(() => {
    const since = leadingSince(replica);
    if (since === undefined) throw new Error("it does not lead");
    return since;
  }, LEADS_WITHIN_MS);
}

/** Changes all Secrets. Returns once the first has arrived, with a promise for the last. */
async function underWay(rig: Rig, count: number, value: string): Promise<() => Promise<void>> {
  const arrived = new Set<string>();
  const [first, last] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const stop = await rig.client.watch(harborPath(NAMESPACE), (object) => {
    if (accessKeyOf(object)?.startsWith(`${value}-`)) arrived.add(object.metadata.name);
    if (arrived.size > 0) first.resolve();
    if (arrived.size >= count) last.resolve();
  });
  const written = atOnce(count, WRITERS, (i) =>
    rig.client.merge(secretPath(NAMESPACE, `s-${i}`), { stringData: { accessKeyID: `${value}-${i}` } }),
  );
  await first.promise;
  return async () => {
    await Promise.all([written, last.promise]);
    stop();
  };
}
