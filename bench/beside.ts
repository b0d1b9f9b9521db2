/**
 * How fast a change arrives in the dependents of the changed object, one at a time and in a burst, next to the floor: a client that writes
 * the object and then its dependents. Inlay and the floor take turns. A change ends when a watch shows that the dependents have changed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Compared, type Course, SIDES, startChanges } from "./course.ts";
import { Process } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median, ms, quantile, spread } from "./table.ts";

const ROUNDS = 3;
/** Changes of one side before the other's turn, because processor time is counted in hundredths of a second. */
const TURN = 10;
/** After each change, so that what it causes later, such as events, does not slow the next one. */
const PAUSE_MS = 20;

/** Milliseconds of a core for a change, by program. */
export type Used = Record<string, number>;

export interface Latency {
  /** Of each change, in milliseconds. */
  times: number[];
  used: Used;
}

export interface Round {
  /** Changes per second. */
  rate: number;
  used: Used;
}

/** From sending a change until its dependents have changed, one change after the other. */
export async function measureLatency(rig: Rig, course: Course, changes: number): Promise<Compared<Latency>> {
  const sides = await startChanges(rig.client, course);
  const latency: Compared<Latency> = { floor: { times: [], used: {} }, ours: { times: [], used: {} } };
  for (let done = 0; done < changes; done += TURN) {
    for (const side of SIDES) {
      const { times, used } = latency[side];
      const before = await processorSeconds(rig);
      for (let n = done; n < Math.min(done + TURN, changes); n++) {
        times.push(await sides[side].single(n % course.count));
        await sleep(PAUSE_MS);
      }
      for (const [program, sum] of Object.entries(await usedSince(rig, before, changes)))
        used[program] = (used[program] ?? 0) + sum;
    }
  }
  for (const side of SIDES) sides[side].stop();
  return latency;
}

/** All objects change at once: how many changes arrive per second. */
export async function measureBurst(rig: Rig, course: Course): Promise<Compared<Round[]>> {
  const sides = await startChanges(rig.client, course);
  const rounds: Compared<Round[]> = { floor: [], ours: [] };
  for (let i = 0; i < ROUNDS; i++) {
    for (const side of SIDES) {
      // Otherwise the rest of the last round would count for the next one.
      await course.settled?.();
      await rig.controller.process.quiet();
      await course.hush?.(true);
      const before = await processorSeconds(rig);
      const took = await sides[side].burst();
      await course.hush?.(false);
      const used = await usedSince(rig, before, course.count);
      rounds[side].push({ rate: (1_000 * course.count) / took, used });
    }
  }
  for (const side of SIDES) sides[side].stop();
  return rounds;
}

/** `most` is the aim for the ratio of the medians. */
export function reportLatency({ table }: Rig, what: string, { floor, ours }: Compared<Latency>, most = 1.3): void {
  for (const q of [0.5, 0.99])
    table.row(`latency of a ${what}, p${q * 100}`, ms(quantile(floor.times, q)), ms(quantile(ours.times, q)));
  const odd = median(floor.times.filter((_, i) => i % 2 === 1));
  const even = median(floor.times.filter((_, i) => i % 2 === 0));
  table.row(
    "  ratio of the medians (floor: of its odd to its even ones)",
    (odd / even).toFixed(2),
    (median(ours.times) / median(floor.times)).toFixed(2),
    `${most} at most`,
  );
}

export function reportBurst({ table }: Rig, { what, count }: Course, { floor, ours }: Compared<Round[]>): void {
  const rates = (rounds: readonly Round[]) => rounds.map(({ rate }) => rate);
  table.row(`burst of ${count} ${what}s, median of ${ROUNDS}`, spread(rates(floor), "/s"), spread(rates(ours), "/s"));
  const share = (100 * median(rates(ours))) / median(rates(floor));
  table.row("  share of the floor's rate", "", `${share.toFixed(0)} %`, "85 % at least");
  for (const name of Object.keys(ours[0]?.used ?? {})) {
    const used = (rounds: readonly Round[]) => ms(median(rounds.map((round) => round.used[name] ?? 0)));
    table.row(`  processor of ${name} for a ${what}`, used(floor), used(ours));
  }
}

/** The programs that share the processor: the servers, the controller if it runs, and this program. */
function programs({ cluster, controller }: Rig): Record<string, Process> {
  return {
    "kube-apiserver": new Process(cluster.processes.get("kube-apiserver")?.pid),
    etcd: new Process(cluster.processes.get("etcd")?.pid),
    ...(controller.pid !== undefined && { "the controller": controller.process }),
    "the benchmark": new Process(process.pid),
  };
}

export async function processorSeconds(rig: Rig): Promise<Record<string, number>> {
  const seconds: Record<string, number> = {};
  for (const [name, program] of Object.entries(programs(rig))) seconds[name] = await program.cpuSeconds();
  return seconds;
}

/** Milliseconds of a core for each of so many changes. */
export async function usedSince(rig: Rig, before: Record<string, number>, count: number): Promise<Used> {
  const after = await processorSeconds(rig);
  return Object.fromEntries(
    Object.entries(after).map(([name, sum]) => [name, (1_000 * (sum - (before[name] ?? 0))) / count]),
  );
}
