/**
 * The shipped composition shared-secret with a claim for each namespace, beside a client that writes the clones and the pod templates
 * itself: how fast one change reaches all, what the bindings cost while nothing changes, and what a restart writes.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { deployment } from "../test/controller/workloads.ts";
import { processorSeconds } from "./beside.ts";
import { type AnyObject, atOnce } from "./cluster.ts";
import type { Rig } from "./rig.ts";
import { median, ms, spread } from "./table.ts";
import { deploymentPath, dropBindings, secretPath } from "./world.ts";

const HOME = "platform";
const NAME = "blogsecret";
const FLOOR = "floor";
const LABEL = "claims";
const STAMP = "ops.corp.com/triggerrestart";
const WIDTH = 50;
/** As many as the controller reconciles at once. */
const WRITTEN_AT_ONCE = 32;
const ROUNDS = 3;
/** Of so many namespaces, one has a Deployment that reads the clone, and one that reads the clone of the floor. */
const NAMESPACES_PER_WORKLOAD = 10;
const COMPOSITIONS = "/apis/inlay.dev/v1alpha1/bindingcompositions";
const root = join(import.meta.dirname, "..");
const folder = join(root, "compositions", "shared-secret");

export async function measureSharedSecretClaims(rig: Rig): Promise<void> {
  const { client, controller, table } = rig;
  const count = rig.of(10_000);
  const workloads = Math.ceil(count / NAMESPACES_PER_WORKLOAD);
  await prepare(rig, count, workloads);
  await controller.start();
  const from = performance.now();
  await client.send("POST", COMPOSITIONS, await composition());
  await rig.synced(count);
  table.note(`${count} namespaces with a binding each in ${HOME}, and ${workloads} Deployments without replicas:`);
  table.ours("  until all are synced", `${((performance.now() - from) / 1_000).toFixed(0)} s`);
  await controller.process.quiet();
  await measureCost(rig, `${count} claims`);
  const took: Record<string, Round[]> = { [FLOOR]: [], [NAME]: [] };
  for (let i = 0; i < ROUNDS; i++)
    for (const name of [FLOOR, NAME]) took[name]?.push(await change(rig, name, count, workloads, `round-${i}`));
  report(rig, count + workloads, took[FLOOR] ?? [], took[NAME] ?? []);
  await controller.process.quiet();
  await measureCost(rig, "  after the changes");
  await measureRestart(rig);
  await controller.stop();
  await client.merge(`${COMPOSITIONS}/shared-secret`, { metadata: { finalizers: null } });
  await client.send("DELETE", `${COMPOSITIONS}/shared-secret`);
  await dropBindings(client);
}

/** The composition as it is, but for the selector: other parts of the benchmark leave namespaces too. */
async function composition(): Promise<AnyObject> {
  const shipped = parse(await readFile(join(folder, "composition.yaml"), "utf8")) as AnyObject;
  shipped.spec.for.selector.matchLabels = { [LABEL]: "true" };
  return shipped;
}

const namespaceOf = (i: number) => `claim-${i}`;
const base64 = (text: string) => Buffer.from(text).toString("base64");
const secretOf = (name: string) => ({
  metadata: { name },
  data: { token: base64("token-0"), rest: base64("x".repeat(1_000)) },
});

async function prepare({ client, cluster }: Rig, count: number, workloads: number): Promise<void> {
  await client.send("POST", "/api/v1/namespaces", { metadata: { name: HOME } });
  const manifest = join(root, "deploy", "manifests", "optional", "compositions.yaml");
  for (const file of [manifest, join(folder, "account.yaml")]) await cluster.kubectl("apply", `--filename=${file}`);
  for (const name of [FLOOR, NAME]) await client.send("POST", secretPath(HOME), secretOf(name));
  await atOnce(count, WIDTH, async (i) => {
    const name = namespaceOf(i);
    await client.send("POST", "/api/v1/namespaces", { metadata: { name, labels: { [LABEL]: "true" } } });
    await client.send("POST", secretPath(name), secretOf(FLOOR));
    if (i >= workloads) return;
    for (const each of [FLOOR, NAME])
      await client.send("POST", deploymentPath(name), deployment(each, { env: { [each]: ["token"] }, replicas: 0 }));
  });
}

interface Round {
  /** Clones and restarts in a second. */
  rate: number;
  /** Milliseconds of a core for one of them, by program. */
  used: Record<string, number>;
}

/** A Secret changes. The floor's client applies the clones, and then the pod templates, as many at once as Inlay. */
async function change(rig: Rig, name: string, count: number, workloads: number, value: string): Promise<Round> {
  const { client, cluster } = rig;
  await rig.controller.process.quiet();
  // It would make a ReplicaSet for each restart, at a time that is chance.
  const controllers = cluster.processes.get("kube-controller-manager");
  await controllers?.kill("SIGSTOP");
  const clones = await changes(rig, "/api/v1/secrets", name, count, ({ data }) => data?.token);
  const stamps = await changes(rig, "/apis/apps/v1/deployments", name, workloads, stampOf);
  const before = await processorSeconds(rig);
  const from = performance.now();
  await client.merge(secretPath(HOME, name), { stringData: { token: value } });
  if (name === FLOOR) {
    const data = { ...secretOf(FLOOR).data, token: base64(value) };
    const clone = { apiVersion: "v1", kind: "Secret", metadata: { name }, data };
    const spec = { template: { metadata: { annotations: { [STAMP]: value } } } };
    const stamped = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, spec };
    await atOnce(count, WRITTEN_AT_ONCE, (i) => client.apply(secretPath(namespaceOf(i), name), clone));
    await atOnce(workloads, WRITTEN_AT_ONCE, (i) => client.apply(deploymentPath(namespaceOf(i), name), stamped));
  }
  const last = Math.max(await clones.last, await stamps.last) - from;
  const after = await processorSeconds(rig);
  await controllers?.kill("SIGCONT");
  for (const { stop } of [clones, stamps]) stop();
  const each = (sum: number) => (1_000 * sum) / (count + workloads);
  const used = Object.entries(after).map(([program, sum]) => [program, each(sum - (before[program] ?? 0))]);
  return { rate: (1_000 * (count + workloads)) / last, used: Object.fromEntries(used) };
}

const stampOf = ({ spec }: AnyObject): string | undefined => spec.template.metadata.annotations?.[STAMP];

/** When the last of so many objects of a name, each in its namespace, has another text than it had. */
async function changes(
  { client }: Rig,
  path: string,
  name: string,
  count: number,
  textOf: (object: AnyObject) => string | undefined,
) {
  const texts = new Map<string, string | undefined>();
  const changed = new Set<string>();
  const last = Promise.withResolvers<number>();
  const stop = await client.watch(path, (object, at) => {
    const { namespace } = object.metadata;
    if (object.metadata.name !== name || namespace === HOME) return;
    const text = textOf(object);
    if (!texts.has(namespace)) return void texts.set(namespace, text);
    if (texts.get(namespace) === text) return;
    changed.add(namespace);
    if (changed.size >= count) last.resolve(at);
  });
  return { last: last.promise, stop };
}

function report({ table }: Rig, writes: number, theirs: readonly Round[], own: readonly Round[]): void {
  const [floorRates, rates] = [theirs, own].map((all) => all.map(({ rate }) => rate)) as [number[], number[]];
  table.row(`${writes} clones and restarts, median of ${ROUNDS}`, spread(floorRates, "/s"), spread(rates, "/s"));
  const share = (100 * median(rates)) / median(floorRates);
  table.row("  share of the floor's rate", "", `${share.toFixed(0)} %`, "60 % at least");
  for (const program of Object.keys(own[0]?.used ?? {})) {
    const each = (all: readonly Round[]) => ms(median(all.map(({ used }) => used[program] ?? 0)));
    table.row(`  processor of ${program}, for each`, each(theirs), each(own));
  }
}

async function measureCost({ controller, table }: Rig, what: string): Promise<void> {
  const { resident, most } = await controller.process.memory();
  table.ours(`resident: ${what}`, `${resident} (most: ${most})`, "350 MB");
  const streams = await controller.metric("inlay_watch_streams", 'state="synced"');
  table.ours("  watch streams of the controller", String(streams), "20 at most");
}

async function measureRestart({ audit, controller, table }: Rig): Promise<void> {
  await controller.stop();
  const mark = await audit.mark();
  const from = performance.now();
  await controller.start();
  const seconds = ((await controller.process.quiet()) - from) / 1_000;
  table.ours("restart, until it is quiet", `${seconds.toFixed(1)} s`);
  const writes = await audit.controllerWritesSince(mark);
  table.ours("  writes to the cluster", String(writes.length), "0");
}
