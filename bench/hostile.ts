/**
 * Ten thousand bindings that try to crash or starve the controller, in one namespace: their effect on the latency of valid bindings in
 * another namespace, on the API server, and on the controller.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { harborCluster } from "../test/controller/harbor.ts";
import { hostileBinding, hostileData } from "../test/controller/hostile.ts";
import { atOnce } from "./cluster.ts";
import type { Rig } from "./rig.ts";
import { quantile } from "./table.ts";
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

const GOOD = "beside-hostile";
const BAD = "hostile";
const GOOD_COUNT = 20;
const ROTATIONS = 100;
/** How long to wait after all are created, until the namespace has used its share of expensive work. */
const RECONCILED_SECONDS = 120;
const WATCHED_SECONDS = 20;
/** The pause between changes: Inlay slows down for a Secret that changes sixty times in a minute. */
const PAUSE_MS = 100;

export async function measureHostile(rig: Rig): Promise<void> {
  const { client, table, controller } = rig;
  const count = rig.of(10_000);
  await makeHostileNamespace(rig);
  const rotations = await startGood(rig, GOOD);
  report(rig, "latency of a change, alone", await rotations.times(ROTATIONS));

  const reconciled = await Reconciled.of(rig);
  const from = performance.now();
  const making = atOnce(count, 20, (n) => client.send("POST", bindingPath(BAD), bindingOf(n)));
  const meanwhile = await rotations.until(making);
  table.ours(`${count} hostile bindings, until they are created`, seconds(from));
  report(rig, "latency of a change, while they are created", meanwhile);
  report(
    rig,
    "latency of a change, while they are reconciled",
    await rotations.until(sleep(RECONCILED_SECONDS * 1_000)),
  );
  table.ours(`  of them with a condition in the first ${seconds(from)}`, String(reconciled.count));
  reconciled.stop();
  rotations.stop();

  const [requests, cpu] = [await requestsServed(rig), await controller.process.cpuSeconds()];
  await sleep(WATCHED_SECONDS * 1_000);
  const made = (await requestsServed(rig)) - requests;
  const used = (await controller.process.cpuSeconds()) - cpu;
  table.ours("  requests to the API server, of all clients", `${(made / WATCHED_SECONDS).toFixed(0)}/s`);
  table.ours("  processor of the controller, of one core", `${((100 * used) / WATCHED_SECONDS).toFixed(0)} %`);
  const { resident, most } = await controller.process.memory();
  table.ours(`resident: ${count} hostile bindings`, `${resident} (most: ${most})`);
  await controller.stop();
  await dropBindings(client);
}

/** Creates working bindings in a namespace, and starts the controller. */
export async function startGood(rig: Rig, namespace: string): Promise<Rotations> {
  const { client, controller } = rig;
  await makeNamespace(client, namespace);
  await makeSecrets(client, () => namespace, GOOD_COUNT);
  await makeHarbors(client, () => namespace, GOOD_COUNT);
  await makeBindings(client, () => namespace, GOOD_COUNT);
  await controller.start();
  await rig.synced(GOOD_COUNT);
  await controller.process.quiet();
  return Rotations.start(rig, namespace);
}

async function makeHostileNamespace({ client }: Rig): Promise<void> {
  await makeNamespace(client, BAD);
  await client.send("POST", secretPath(BAD), {
    metadata: { name: "hostile" },
    stringData: hostileData("bench"),
  });
  const names = ["hostile", ...Array.from({ length: 32 }, (_, n) => `many-${n}`)];
  await atOnce(names.length, 20, (n) => client.send("POST", harborPath(BAD), harborCluster(names[n] as string)));
}

const bindingOf = (n: number) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name: `bad-${n}` },
  spec: hostileBinding(n).spec,
});

/** Counts the hostile bindings with a condition: their namespace gets only its share of the time. */
class Reconciled {
  readonly #reconciled = new Set<string>();
  stop: () => void = () => {};

  static async of({ client }: Rig): Promise<Reconciled> {
    const reconciled = new Reconciled();
    reconciled.stop = await client.watch(bindingPath(BAD), ({ metadata, status }) => {
      if (status?.conditions !== undefined) reconciled.#reconciled.add(metadata.uid);
    });
    return reconciled;
  }

  get count(): number {
    return this.#reconciled.size;
  }
}

/** Changes of one Secret after the other, and how long each took to arrive in its target. */
export class Rotations {
  readonly #rig: Rig;
  readonly #arrivals = new Map<string, (at: number) => void>();
  #count = 0;
  stop: () => void = () => {};

  readonly #namespace: string;

  private constructor(rig: Rig, namespace: string) {
    this.#rig = rig;
    this.#namespace = namespace;
  }

  static async start(rig: Rig, namespace: string): Promise<Rotations> {
    const rotations = new Rotations(rig, namespace);
    rotations.stop = await rig.client.watch(harborPath(namespace), (object, at) =>
      rotations.#arrivals.get(accessKeyOf(object) ?? "")?.(at),
    );
    return rotations;
  }

  async times(count: number): Promise<number[]> {
    const took: number[] = [];
    for (let n = 0; n < count; n++) took.push(await this.#once());
    return took;
  }

  async until(end: Promise<unknown>): Promise<number[]> {
    let isOver = false;
    void end.then(() => {
      isOver = true;
    });
    const took: number[] = [];
    do {
      took.push(await this.#once());
    } while (!isOver);
    return took;
  }

  async #once(): Promise<number> {
    const n = this.#count++;
    const value = `good-${n}`;
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#arrivals.set(value, resolve);
    const from = performance.now();
    await this.#rig.client.merge(secretPath(this.#namespace, `s-${n % GOOD_COUNT}`), {
      stringData: { accessKeyID: value },
    });
    const took = (await promise) - from;
    this.#arrivals.delete(value);
    await sleep(PAUSE_MS);
    return took;
  }
}

export function report({ table }: Rig, what: string, times: readonly number[]): void {
  const [half, most] = [0.5, 0.99].map((q) => `${quantile(times, q).toFixed(0)} ms`);
  table.ours(`${what}, p50 and p99 of ${times.length}`, `${half}, ${most}`);
}

const seconds = (from: number) => `${((performance.now() - from) / 1_000).toFixed(0)} s`;

export async function requestsServed({ cluster }: Rig): Promise<number> {
  const text = (await cluster.kubectl("get", "--raw", "/metrics")).stdout;
  const lines = text.split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
}
