/**
 * Tenants who try to stop the controller for all, one after the other, each beside a namespace with one binding: the latency of that
 * binding's changes, the longest block of the controller's event loop, and its memory. The controller has the memory of the shipped pod,
 * and starts once more beside all that a tenant has made.
 */
import { share } from "../test/control-plane/shared.ts";
import { ATTACKS } from "../test/controller/attacks/all.ts";
import type { Attack } from "../test/controller/attacks/attack.ts";
import { configFile } from "../test/controller/attacks/attacked.ts";
import { clear } from "../test/controller/attacks/clear.ts";
import { type Served, Victim } from "../test/controller/attacks/victim.ts";
import { createNamespace } from "../test/controller/test-namespace.ts";
import { BuiltController, imageEnvironment } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { quantile } from "./table.ts";

const QUIET_MS = 10_000;
/** How long the tenant's objects are watched when all are made. */
const WATCHED_MS = 30_000;

class PodController extends BuiltController {
  /** Node gives half of the pod's memory to the heap. */
  protected override readonly env = { ...imageEnvironment(), NODE_OPTIONS: "--max-old-space-size=512" };
}

export async function measureHostile(rig: Rig): Promise<void> {
  share(rig.cluster);
  rig.table.cells("beside a tenant with", "p50", "p99", "times", "blocked", "memory", "starts");
  for (const attack of ATTACKS) await measureAttack(rig, attack);
}

async function measureAttack({ cluster, table, scale }: Rig, { tenant, prepare, launch, end }: Attack): Promise<void> {
  const attacker = await createNamespace({ account: false, rules: [], controller: false });
  const config = await configFile(cluster, await prepare?.(attacker));
  const controller = new PodController(cluster, "--leader-elect", "--log-level", "info", "--config", config);
  await controller.start();
  const victim = await Victim.beside(controller);
  const row = async (what: string, { changes, blockedMs }: Served, quiet?: Served) => {
    const p99 = quantile(changes, 0.99);
    const times = quiet === undefined ? "" : (p99 / quantile(quiet.changes, 0.99)).toFixed(1);
    const latencies = [quantile(changes, 0.5), p99].map((each) => `${each.toFixed(0)} ms`);
    const { most } = await controller.process.memory();
    const starts = controller.output.match(/controller started/g)?.length ?? 0;
    table.cells(what, ...latencies, times, `${blockedMs.toFixed(0)} ms`, most, String(starts));
  };
  try {
    const quiet = await victim.during(Promise.resolve(), QUIET_MS);
    await row("no objects", quiet);
    await row(tenant, await victim.during(launch(attacker, scale)), quiet);
    await row("  when all are made", await victim.during(Promise.resolve(), WATCHED_MS), quiet);
    await controller.stop();
    await controller.start();
    await row("  after a restart", await victim.during(Promise.resolve(), WATCHED_MS), quiet);
  } catch (error) {
    table.note(`${tenant}: ${error instanceof Error ? error.message : error}`);
  } finally {
    await controller.stop();
    await end?.(attacker);
    await clear(attacker);
    await victim.leave();
  }
}
