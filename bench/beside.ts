/**
 * How fast a changed Secret arrives, one at a time and in a burst, next to the floor: a client that writes the Secret and then its
 * dependent object. Inlay and the floor take turns. A change ends when a watch shows that the dependent object has changed.
 */
import type { AnyObject } from "./cluster.ts";
import { atOnce } from "./cluster.ts";
import { Process } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median, ms, quantile, spread } from "./table.ts";
import { secretPath } from "./world.ts";

const ROUNDS = 3;
const WRITERS = 50;

/** The dependents of Secrets or other objects: `prefix-0` of the Secret `s-0`, and so on, in two namespaces. */
export interface Course {
  /** The effect of a change, in the table. */
  what: string;
  floor: string;
  ours: string;
  prefix: string;
  /** A suffix after the number, in the names of dependents. */
  suffix?: string;
  count: number;
  path(namespace: string, name?: string): string;
  /** Differs after each change. */
  textOf(object: AnyObject): string | undefined;
  /** The write of the floor. */
  patch(value: string, i: number): object;
  /** The changed object, unless it is a Secret. */
  changed?(namespace: string, i: number, value: string): { path: string; patch: object };
  /** Waits until only the controller still works on the last changes. */
  settled?(): Promise<void>;
  /** Pauses other programs that would work during a burst, and resumes them, because their load falls on one side by chance. */
  hush?(on: boolean): Promise<void>;
}

/** Waits until dependents have changed. */
class Arrivals {
  readonly #texts = new Map<string, string | undefined>();
  readonly #waiting = new Map<string, (at: number) => void>();
  stop: () => void = () => {};

  static async of({ client }: Rig, { path, textOf }: Course, namespace: string): Promise<Arrivals> {
    const arrivals = new Arrivals();
    arrivals.stop = await client.watch(path(namespace), (object, at) => {
      const { name } = object.metadata;
      const text = textOf(object);
      if (arrivals.#texts.get(name) === text) return;
      arrivals.#texts.set(name, text);
      arrivals.#waiting.get(name)?.(at);
    });
    return arrivals;
  }

  /** The time of its next change. */
  async next(name: string): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#waiting.set(name, resolve);
    const at = await promise;
    this.#waiting.delete(name);
    return at;
  }
}

/** From sending the change of the Secret until the change of its dependent, one after the other. */
export async function compareLatency(rig: Rig, course: Course): Promise<void> {
  const { what, floor, ours, count } = course;
  const took: Record<string, number[]> = { [floor]: [], [ours]: [] };
  const arrivals: Record<string, Arrivals> = {};
  for (const namespace of [floor, ours]) arrivals[namespace] = await Arrivals.of(rig, course, namespace);
  for (let i = 0; i < rig.of(300); i++) {
    for (const namespace of [floor, ours]) {
      const arrival = arrivals[namespace]?.next(nameOf(course, i % count));
      const from = performance.now();
      await change(rig, course, namespace, i % count, `latency-${i}`);
      took[namespace]?.push(((await arrival) ?? Number.NaN) - from);
    }
  }
  for (const { stop } of Object.values(arrivals)) stop();
  const [theirs, own] = [took[floor] ?? [], took[ours] ?? []];
  for (const q of [0.5, 0.99])
    rig.table.row(`latency of a ${what}, p${q * 100}`, ms(quantile(theirs, q)), ms(quantile(own, q)));
  const odd = median(theirs.filter((_, i) => i % 2 === 1));
  const even = median(theirs.filter((_, i) => i % 2 === 0));
  rig.table.row(
    "  ratio of the medians (floor: of its odd to its even ones)",
    (odd / even).toFixed(2),
    (median(own) / median(theirs)).toFixed(2),
    "2 at most",
  );
}

export interface Round {
  namespace: string;
  /** Changes per second. */
  rate: number;
  /** Milliseconds of a core for a change, by program. */
  used: Record<string, number>;
}

/** All Secrets change at once: how many dependents follow per second. Returns the rounds of Inlay. */
export async function compareBurst(rig: Rig, course: Course): Promise<readonly Round[]> {
  const { what, floor, ours, count } = course;
  const rounds: Round[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    for (const namespace of [floor, ours]) {
      // Otherwise the rest of the last round would count for the next one.
      await course.settled?.();
      await rig.controller.process.quiet();
      await course.hush?.(true);
      const before = await processorSeconds(rig);
      const rate = count / (await burst(rig, course, namespace, `burst-${i}`));
      await course.hush?.(false);
      const after = await processorSeconds(rig);
      const used = Object.entries(after).map(([name, sum]) => [name, (1_000 * (sum - (before[name] ?? 0))) / count]);
      rounds.push({ namespace, rate, used: Object.fromEntries(used) });
    }
  }
  const of = (namespace: string) => rounds.filter((round) => round.namespace === namespace);
  const [theirs, own] = [of(floor), of(ours)].map((each) => each.map(({ rate }) => rate)) as [number[], number[]];
  rig.table.row(`burst of ${count} ${what}s, median of ${ROUNDS}`, spread(theirs, "/s"), spread(own, "/s"));
  const share = (100 * median(own)) / median(theirs);
  rig.table.row("  share of the floor's rate", "", `${share.toFixed(0)} %`, "60 % at least");
  for (const name of Object.keys(programs(rig))) {
    const used = (namespace: string) => ms(median(of(namespace).map((round) => round.used[name] ?? 0)));
    rig.table.row(`  processor of ${name} for a ${what}`, used(floor), used(ours));
  }
  return of(ours);
}

/** Seconds until all dependents of a namespace have followed. */
async function burst(rig: Rig, course: Course, namespace: string, value: string): Promise<number> {
  const { count } = course;
  const arrivals = await Arrivals.of(rig, course, namespace);
  const from = performance.now();
  const all = Promise.all(Array.from({ length: count }, (_, i) => arrivals.next(nameOf(course, i))));
  await atOnce(count, WRITERS, (i) => change(rig, course, namespace, i, `${value}-${i}`));
  await all;
  const seconds = (performance.now() - from) / 1_000;
  arrivals.stop();
  return seconds;
}

/** Changes a Secret or its replacement, and in the floor's namespace also its dependent. */
async function change({ client }: Rig, course: Course, namespace: string, i: number, value: string): Promise<void> {
  const secret = { path: secretPath(namespace, `s-${i}`), patch: { stringData: { accessKeyID: value } } };
  const { path, patch } = course.changed?.(namespace, i, value) ?? secret;
  await client.merge(path, patch);
  if (namespace === course.floor) await client.merge(course.path(namespace, nameOf(course, i)), course.patch(value, i));
}

const nameOf = ({ prefix, suffix = "" }: Course, i: number) => `${prefix}-${i}${suffix}`;

/** The programs that share the processor: the servers, the controller, and this program. */
function programs({ cluster, controller }: Rig): Record<string, Process> {
  return {
    "kube-apiserver": new Process(cluster.processes.get("kube-apiserver")?.pid),
    etcd: new Process(cluster.processes.get("etcd")?.pid),
    "the controller": controller.process,
    "the benchmark": new Process(process.pid),
  };
}

export async function processorSeconds(rig: Rig): Promise<Record<string, number>> {
  const seconds: Record<string, number> = {};
  for (const [name, program] of Object.entries(programs(rig))) seconds[name] = await program.cpuSeconds();
  return seconds;
}
