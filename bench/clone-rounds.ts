/** One change of a Secret that reaches clones and pod templates in many namespaces: its speed and its cost, next to the floor. */
import { processorSeconds } from "./beside.ts";
import type { AnyObject } from "./cluster.ts";
import type { Rig } from "./rig.ts";
import { median, ms, spread } from "./table.ts";

/** The objects that change in a round. */
export interface RoundOf {
  /** The paths of the clones, and of the objects that show a restart. */
  name: string;
  /** The namespace of the source Secret, which is not a clone. */
  home: string;
  clones: number;
  restarts: number;
  /** The annotation of pod templates. */
  stamp: string;
}

export interface Round {
  /** Milliseconds until the first clone has changed. */
  first: number;
  /** Clones and restarts per second. */
  rate: number;
  /** Milliseconds of a core for each of these, by program. */
  used: Record<string, number>;
}

/** Measures from the start of `change` until everything has changed, with the controller of Deployments stopped. */
export async function measureRound(rig: Rig, of: RoundOf, change: () => Promise<void>): Promise<Round> {
  await rig.controller.process.quiet();
  // It would create a ReplicaSet for each restart, at a random time.
  const controllers = rig.cluster.processes.get("kube-controller-manager");
  await controllers?.kill("SIGSTOP");
  const stampOf = ({ spec }: AnyObject): string | undefined => spec.template.metadata.annotations?.[of.stamp];
  const clones = await changes(rig, of, "/api/v1/secrets", of.clones, ({ data }) => data?.token);
  const stamps = await changes(rig, of, "/apis/apps/v1/deployments", of.restarts, stampOf);
  const before = await processorSeconds(rig);
  const from = performance.now();
  await change();
  const first = (await clones.first) - from;
  const last = Math.max(await clones.last, await stamps.last) - from;
  const after = await processorSeconds(rig);
  await controllers?.kill("SIGCONT");
  for (const { stop } of [clones, stamps]) stop();
  const writes = of.clones + of.restarts;
  const used = Object.entries(after).map(([program, sum]) => [
    program,
    (1_000 * (sum - (before[program] ?? 0))) / writes,
  ]);
  return { first, rate: (1_000 * writes) / last, used: Object.fromEntries(used) };
}

/** When the text of the first and of the last object has changed, in one namespace each. */
async function changes(
  { client }: Rig,
  { name, home }: RoundOf,
  path: string,
  count: number,
  textOf: (object: AnyObject) => string | undefined,
) {
  const texts = new Map<string, string | undefined>();
  const changed = new Set<string>();
  const [first, last] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
  const stop = await client.watch(path, (object, at) => {
    const { namespace } = object.metadata;
    if (object.metadata.name !== name || namespace === home) return;
    const text = textOf(object);
    if (!texts.has(namespace)) return void texts.set(namespace, text);
    if (texts.get(namespace) === text) return;
    changed.add(namespace);
    if (changed.size === 1) first.resolve(at);
    if (changed.size >= count) last.resolve(at);
  });
  return { first: first.promise, last: last.promise, stop };
}

/** `what` describes the written objects. */
export function reportRate({ table }: Rig, what: string, theirs: readonly Round[], own: readonly Round[]): void {
  const [floorRates, rates] = [theirs, own].map((all) => all.map(({ rate }) => rate)) as [number[], number[]];
  table.row(`${what}, median of ${own.length}`, spread(floorRates, "/s"), spread(rates, "/s"));
  const share = (100 * median(rates)) / median(floorRates);
  table.row("  share of the floor's rate", "", `${share.toFixed(0)} %`, "60 % at least");
}

export function reportProcessor({ table }: Rig, theirs: readonly Round[], own: readonly Round[]): void {
  for (const program of Object.keys(own[0]?.used ?? {})) {
    const each = (all: readonly Round[]) => ms(median(all.map(({ used }) => used[program] ?? 0)));
    table.row(`  processor of ${program}, for each`, each(theirs), each(own));
  }
}
