/**
 * One binding that clones a Secret into many namespaces and restarts the workloads that read the clones, next to a client that writes the
 * clones and the pod templates itself: how fast the first and the last follow, and the memory for all of them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { deployment } from "../test/controller/workloads.ts";
import { measureRound, type Round, reportProcessor, reportRate } from "./clone-rounds.ts";
import { type AnyObject, atOnce } from "./cluster.ts";
import type { Rig } from "./rig.ts";
import { median, ms } from "./table.ts";
import { bindingPath, deploymentPath, dropBindings, makeNamespace, secretPath } from "./world.ts";

const HOME = "spread-home";
const OURS = "login";
const FLOOR = "floor";
const STAMP = "inlay.dev/rollout";
const WIDTH = 50;
const ROUNDS = 3;
/** Clones of one namespace, and workloads for each two namespaces, where memory is measured. */
const CLONES = 5;
const WORKLOADS = 2.5;
const IDLE_SECONDS = 20;

export async function measureSpread(rig: Rig): Promise<void> {
  const { client, controller, table } = rig;
  const count = rig.of(1_000);
  await prepare(rig, count);
  await client.send("POST", bindingPath(HOME), bindingOf("spread", [OURS]));
  await controller.start();
  await rolledOut(rig, "spread");
  await controller.process.quiet();
  table.note(
    `${count} namespaces, each with a clone and a Deployment without replicas; the controller of Deployments is stopped:`,
  );
  const took: Record<string, Round[]> = { [FLOOR]: [], [OURS]: [] };
  for (let i = 0; i < ROUNDS; i++)
    for (const name of [FLOOR, OURS]) took[name]?.push(await change(rig, name, count, `round-${i}`));
  report(rig, count, took[FLOOR] ?? [], took[OURS] ?? []);
  const streams = await controller.metric("inlay_watch_streams", 'state="synced"');
  table.ours(`watch streams of the controller, for ${count} namespaces`, String(streams), "10 at most");
  await measureSize(rig, count);
  await controller.stop();
  await dropBindings(client);
}

const namespaceOf = (i: number) => `spread-${i}`;

/** Secrets in one namespace, and beside each clone to come, one of the floor; a Deployment reads each. */
async function prepare({ client }: Rig, count: number): Promise<void> {
  await makeNamespace(client, HOME);
  const names = [OURS, ...Array.from({ length: CLONES - 1 }, (_, n) => `more-${n}`)];
  for (const name of names) await client.send("POST", secretPath(HOME), secretOf(name));
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  await client.send("POST", `${rbac}/clusterroles`, {
    metadata: { name: HOME },
    rules: [
      { apiGroups: [""], resources: ["secrets"], verbs: ["get", "list", "watch", "create", "patch", "delete"] },
      { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] },
      { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list", "watch", "patch"] },
    ],
  });
  await client.send("POST", `${rbac}/clusterrolebindings`, {
    metadata: { name: HOME },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: HOME },
    subjects: [{ kind: "ServiceAccount", name: "inlay", namespace: HOME }],
  });
  await atOnce(count, WIDTH, async (i) => {
    const namespace = namespaceOf(i);
    await client.send("POST", "/api/v1/namespaces", { metadata: { name: namespace, labels: { spread: "true" } } });
    await client.send("POST", secretPath(namespace), secretOf(FLOOR));
    for (const name of [FLOOR, OURS]) await client.send("POST", deploymentPath(namespace), readerOf(name, name));
  });
}

const secretOf = (name: string) => ({ metadata: { name }, stringData: { token: "token-0", rest: "x".repeat(1_000) } });
const readerOf = (name: string, secret: string) => deployment(name, { env: { [secret]: ["token"] }, replicas: 0 });

const bindingOf = (name: string, clones: readonly string[]) => ({
  apiVersion: "inlay.dev/v1alpha1",
  kind: "SecretBinding",
  metadata: { name },
  spec: {
    acknowledge: ["ReadableCopies"],
    sources: clones.map((clone) => ({ secret: { name: clone } })),
    targets: clones.map((clone) => ({
      apiVersion: "v1",
      kind: "Secret",
      name: clone,
      namespaceSelector: { matchLabels: { spread: "true" } },
      create: { manifest: {} },
      fields: [{ path: "data", from: { source: clone } }],
    })),
    rollout: { consumersOfTargets: true, consumersBy: ["Env"], kinds: ["Deployment"] },
  },
});

/** The Secret changes. The floor's client writes the clones, and then the pod templates. */
async function change(rig: Rig, name: string, count: number, value: string): Promise<Round> {
  const { client } = rig;
  const round = await measureRound(
    rig,
    { name, home: HOME, clones: count, restarts: count, stamp: STAMP },
    async () => {
      const data = { stringData: { token: value } };
      await client.merge(secretPath(HOME, OURS), name === OURS ? data : { metadata: { labels: { floor: value } } });
      if (name !== FLOOR) return;
      const template = { metadata: { annotations: { [STAMP]: value } } };
      await atOnce(count, WIDTH, (i) => client.merge(secretPath(namespaceOf(i), name), data));
      await atOnce(count, WIDTH, (i) => client.merge(deploymentPath(namespaceOf(i), name), { spec: { template } }));
    },
  );
  await sleep(500);
  return round;
}

function report(rig: Rig, count: number, theirs: readonly Round[], own: readonly Round[]): void {
  const { table } = rig;
  reportRate(rig, `${count} clones and ${count} restarts`, theirs, own);
  const [floorFirst, first] = [theirs, own].map((all) => median(all.map((round) => round.first))) as [number, number];
  table.row("  until the first clone, median", ms(floorFirst), ms(first));
  table.row("  ratio", "", (first / floorFirst).toFixed(2), "2 at most");
  reportProcessor(rig, theirs, own);
}

/** Memory and idle load with more clones and workloads, also of one binding. */
async function measureSize(rig: Rig, count: number): Promise<void> {
  const { client, controller, table } = rig;
  await controller.stop();
  await dropBindings(client);
  const names = [OURS, ...Array.from({ length: CLONES - 1 }, (_, n) => `more-${n}`)];
  const workloads = Math.round(count * WORKLOADS);
  await atOnce(workloads - count, WIDTH, (i) => {
    const reader = readerOf(`reader-${i}`, names[i % names.length] ?? OURS);
    return client.send("POST", deploymentPath(namespaceOf(i % count)), reader);
  });
  await atOnce(count, WIDTH, (i) => client.send("DELETE", secretPath(namespaceOf(i), OURS)));
  await client.send("POST", bindingPath(HOME), bindingOf("many", names));
  await controller.start();
  await rolledOut(rig, "many");
  await controller.process.quiet();
  const report = async (when: string) => {
    const { resident, most } = await controller.process.memory();
    const what = `resident: ${count * CLONES} clones and ${workloads} workloads of one binding${when}`;
    table.ours(what, `${resident} (most: ${most})`, "200 MB");
  };
  await report("");
  const before = await controller.process.cpuSeconds();
  await sleep(IDLE_SECONDS * 1_000);
  const share = (100 * ((await controller.process.cpuSeconds()) - before)) / IDLE_SECONDS;
  table.ours("  idle", `${share.toFixed(2)} % of a core`, "under 1 %");
  await atOnce(names.length, WIDTH, (n) =>
    client.merge(secretPath(HOME, names[n] ?? ""), { stringData: { token: "all" } }),
  );
  await rolledOut(rig, "many", 1);
  await controller.process.quiet();
  await report(", after all changed");
  await controller.stop();
  const restarted = await rig.audit.mark();
  await controller.start();
  await controller.process.quiet();
  const writes = await rig.audit.controllerWritesSince(restarted);
  table.ours("  writes of a restart", String(writes.length), "0");
}

/** Waits until a binding reports no pending restart. */
async function rolledOut({ client }: Rig, name: string, revision = 0): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = await client.watch(bindingPath(HOME), ({ metadata, status }) => {
    const conditions: AnyObject[] = metadata.name === name ? (status?.conditions ?? []) : [];
    const isDone = conditions.length === 2 && conditions.every((each) => each.status === "True");
    if (isDone && (status.rollout?.revision ?? 0) >= revision) resolve();
  });
  await promise;
  stop();
}
