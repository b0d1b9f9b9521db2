/**
 * Bindings that name a thousand objects each, which their accounts may not watch, or may watch only by name: their effect on the latency of
 * valid bindings in another namespace, on the API server, and on the controller.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { namedDeployment, namingBinding } from "../test/controller/hostile.ts";
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

const GOOD = "beside-naming";
const GOOD_COUNT = 20;
const ROTATIONS = 100;
/** The pause between changes: Inlay slows down for a Secret that changes sixty times in a minute. */
const PAUSE_MS = 100;
const WATCHED_SECONDS = 20;
/** Until the pauses between attempts have reached their maximum. */
const SETTLED_SECONDS = 15;

export async function measureStreams(rig: Rig): Promise<void> {
  const { client, table, controller } = rig;
  const count = rig.of(30);
  const rotations = await startGood(rig, GOOD);
  report(rig, "latency of a change, alone", await rotations.times(ROTATIONS));
  const { resident: before } = await controller.process.memory();
  await atOnce(count, 10, async (n) => {
    const name = namespaceOf(n);
    await client.send("POST", "/api/v1/namespaces", { metadata: { name } });
    await client.send("POST", `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: "inlay" } });
  });
  await atOnce(count, 10, (n) =>
    client.send("POST", bindingPath(namespaceOf(n)), {
      apiVersion: "inlay.dev/v1alpha1",
      kind: "SecretBinding",
      metadata: { name: "naming" },
      spec: namingBinding(n),
    }),
  );
  await reportBeside(rig, rotations, `${count} bindings of 1,100 names each, without permissions`);
  await atOnce(count, 10, (n) => allowByName(rig, n));
  await reportBeside(rig, rotations, "the same, with permissions on each name");
  table.ours("resident before them", before);
  rotations.stop();
  await controller.stop();
  await dropBindings(client);
}

const namespaceOf = (n: number) => `naming-${n}`;

async function allowByName({ client }: Rig, n: number): Promise<void> {
  const namespace = namespaceOf(n);
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const resourceNames = Array.from({ length: 1_024 }, (_, d) => namedDeployment(n, d));
  await client.send("POST", `${rbac}/roles`, {
    metadata: { name: "inlay" },
    rules: [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["list", "watch"], resourceNames }],
  });
  await client.send("POST", `${rbac}/rolebindings`, {
    metadata: { name: "inlay" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "inlay" },
    subjects: [{ kind: "ServiceAccount", name: "inlay", namespace }],
  });
}

async function reportBeside(rig: Rig, rotations: Rotations, what: string): Promise<void> {
  const { table, controller } = rig;
  await controller.metric("nodejs_eventloop_lag_max_seconds");
  report(rig, `${what}: latency while they are created`, await rotations.until(sleep(SETTLED_SECONDS * 1_000)));
  const longest = await controller.metric("nodejs_eventloop_lag_max_seconds");
  report(rig, "  latency then", await rotations.times(ROTATIONS));
  const [requests, cpu] = [await requestsServed(rig), await controller.process.cpuSeconds()];
  await sleep(WATCHED_SECONDS * 1_000);
  const made = (await requestsServed(rig)) - requests;
  const used = (await controller.process.cpuSeconds()) - cpu;
  table.ours("  longest block of the event loop", `${(longest * 1_000).toFixed(0)} ms`);
  table.ours("  requests to the API server, of all clients", `${(made / WATCHED_SECONDS).toFixed(0)}/s`);
  table.ours("  processor of the controller, of one core", `${((100 * used) / WATCHED_SECONDS).toFixed(0)} %`);
  const { resident, most } = await controller.process.memory();
  table.ours("  resident", `${resident} (most: ${most})`);
}

/** Creates working bindings in a namespace, and starts the controller. */
async function startGood(rig: Rig, namespace: string): Promise<Rotations> {
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

/** Changes of one Secret after the other, and how long each took to arrive in its target. */
class Rotations {
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

function report({ table }: Rig, what: string, times: readonly number[]): void {
  const [half, most] = [0.5, 0.99].map((q) => `${quantile(times, q).toFixed(0)} ms`);
  table.ours(`${what}, p50 and p99 of ${times.length}`, `${half}, ${most}`);
}

async function requestsServed({ cluster }: Rig): Promise<number> {
  const text = (await cluster.kubectl("get", "--raw", "/metrics")).stdout;
  const lines = text.split("\n").filter((line) => line.startsWith("apiserver_request_total{"));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
}
