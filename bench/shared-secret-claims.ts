/**
 * The composition shared-secret with a claim for each namespace, next to a client that writes the clones and the pod templates itself: how
 * fast one change reaches all, the cost of the bindings while nothing changes, and the writes after a restart.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { deployment } from "../test/controller/workloads.ts";
import { measureRound, type Round, reportProcessor, reportRate } from "./clone-rounds.ts";
import { type AnyObject, atOnce } from "./cluster.ts";
import type { Rig } from "./rig.ts";
import { deploymentPath, dropBindings, secretPath } from "./world.ts";

const HOME = "platform";
const NAME = "blogsecret";
const FLOOR = "floor";
const LABEL = "claims";
const STAMP = "ops.corp.com/triggerrestart";
const WIDTH = 50;
/** As many as the controller reconciles at the same time. */
const WRITTEN_AT_ONCE = 32;
const ROUNDS = 3;
/** One of so many namespaces has a Deployment that reads the clone, and one that reads the floor's clone. */
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
  const [floor = [], own = []] = [took[FLOOR], took[NAME]];
  reportRate(rig, `${count + workloads} clones and restarts`, floor, own);
  reportProcessor(rig, floor, own);
  await controller.process.quiet();
  await measureCost(rig, "  after the changes");
  await measureRestart(rig);
  await controller.stop();
  await client.merge(`${COMPOSITIONS}/shared-secret`, { metadata: { finalizers: null } });
  await client.send("DELETE", `${COMPOSITIONS}/shared-secret`);
  await dropBindings(client);
}

/** The original composition with another selector, because other parts of the benchmark leave namespaces behind. */
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

/** A Secret changes. The floor's client applies the clones and then the pod templates, as many at the same time as Inlay. */
function change(rig: Rig, name: string, count: number, workloads: number, value: string): Promise<Round> {
  const { client } = rig;
  return measureRound(rig, { name, home: HOME, clones: count, restarts: workloads, stamp: STAMP }, async () => {
    await client.merge(secretPath(HOME, name), { stringData: { token: value } });
    if (name !== FLOOR) return;
    const data = { ...secretOf(FLOOR).data, token: base64(value) };
    const clone = { apiVersion: "v1", kind: "Secret", metadata: { name }, data };
    const spec = { template: { metadata: { annotations: { [STAMP]: value } } } };
    const stamped = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, spec };
    await atOnce(count, WRITTEN_AT_ONCE, (i) => client.apply(secretPath(namespaceOf(i), name), clone));
    await atOnce(workloads, WRITTEN_AT_ONCE, (i) => client.apply(deploymentPath(namespaceOf(i), name), stamped));
  });
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
