/**
 * How fast workloads restart for a changed Secret, how many at the same time if the configuration sets a limit, and the memory for them.
 * Only the limit is measured with pods: elsewhere Deployments have no replicas, so that pods are not measured.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRolling } from "../test/controller/workloads.ts";
import { measureBurst, measureLatency, reportBurst, reportLatency } from "./beside.ts";
import { type AnyObject, atOnce } from "./cluster.ts";
import { type Course, secretChange } from "./course.ts";
import { BuiltController } from "./processes.ts";
import { courseFigures } from "./results.ts";
import type { Rig } from "./rig.ts";
import {
  bindingPath,
  deploymentPath,
  dropBindings,
  makeDeployments,
  makeNamespace,
  makeRollouts,
  makeSecrets,
  secretPath,
} from "./world.ts";

const OURS = "restarts";
const FLOOR = "restarts-floor";
const MANY = "many-workloads";
const STAMP = "inlay.dev/rollout";
const LIMIT = 20;
const WRITERS = 50;

export async function measureRollouts(rig: Rig): Promise<void> {
  const count = rig.of(1_000);
  for (const namespace of [FLOOR, OURS]) {
    await makeNamespace(rig.client, namespace);
    await makeSecrets(rig.client, () => namespace, count);
    await makeDeployments(rig.client, namespace, count, count);
  }
  await makeRollouts(rig.client, OURS, count);
  await rig.controller.start();
  await rolledOut(rig, OURS, count);
  await rig.controller.process.quiet();
  const namespaces = { floor: FLOOR, ours: OURS };
  const course: Course = {
    what: "restart",
    count,
    watched: (side) => deploymentPath(namespaces[side]),
    change: (side, i, value) => secretChange(namespaces[side], i, value),
    dependents: (side, i, value) => {
      const template = { metadata: { annotations: { [STAMP]: value } } };
      return [{ path: deploymentPath(namespaces[side], `d-${i}`), patch: { spec: { template } } }];
    },
    textOf: stampOf,
    // Its five requests for each restart are sent after the floor's round, but during ours.
    hush: async (on) => rig.cluster.processes.get("kube-controller-manager")?.kill(on ? "SIGSTOP" : "SIGCONT"),
    settled: async () => {
      for (const namespace of [FLOOR, OURS]) await until(rig, deploymentPath(namespace), count, isRolledOut);
    },
  };
  rig.table.note("Deployments without replicas; in bursts their controller is stopped:");
  const latency = await measureLatency(rig, course, rig.of(300));
  reportLatency(rig, course.what, latency);
  const burst = await measureBurst(rig, course);
  reportBurst(rig, course, burst);
  rig.results.add("rollouts", courseFigures(latency, burst));
  await rig.controller.stop();
  await measureLimit(rig, count);
  await dropBindings(rig.client);
}

/** All Secrets change at once with a limit of concurrent rollouts: how many workloads roll out, and how long that takes. */
async function measureLimit(rig: Rig, count: number): Promise<void> {
  const { client, cluster, table } = rig;
  await atOnce(count, WRITERS, (i) => client.merge(deploymentPath(OURS, `d-${i}`), { spec: { replicas: 1 } }));
  await until(rig, deploymentPath(OURS), count, isRolledOut);
  const config = join(cluster.folder, "inlay.yaml");
  const text = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };
  const rollouts = { maxConcurrent: LIMIT, maxConcurrentPerNamespace: LIMIT };
  await writeFile(config, JSON.stringify({ ...text, rollouts }));
  const controller = new BuiltController(cluster, "--log-level", "info", "--config", config);
  await controller.start();
  try {
    await controller.process.quiet();
    const { items } = await client.send("GET", deploymentPath(OURS));
    const before = new Map<string, string | undefined>(items.map((each: AnyObject) => [nameOf(each), stampOf(each)]));
    const rolling = new Set<string>();
    let most = 0;
    const from = performance.now();
    const done = until(rig, deploymentPath(OURS), count, (object) => {
      const [name, isRestarted] = [nameOf(object), stampOf(object) !== before.get(nameOf(object))];
      const isDone = isRestarted && isRolledOut(object);
      if (isRestarted && !isDone) rolling.add(name);
      else rolling.delete(name);
      most = Math.max(most, rolling.size);
      return isDone;
    });
    await changeAll(rig, OURS, count);
    await done;
    const seconds = (performance.now() - from) / 1_000;
    table.ours(
      `${count} restarts of a pod each, maxConcurrent ${LIMIT}, most at once`,
      String(most),
      `${LIMIT} at most`,
    );
    table.ours("  until the last has rolled out", `${seconds.toFixed(0)} s`);
  } finally {
    await controller.stop();
  }
}

/** Resident memory with many Secrets and many workloads that read them, before and after all have restarted. */
export async function measureWorkloads(rig: Rig): Promise<void> {
  const { client, controller, table } = rig;
  const [secrets, workloads, bindings] = [rig.of(10_000), rig.of(3_000), rig.of(1_000)];
  await makeNamespace(client, MANY);
  await makeSecrets(client, () => MANY, secrets);
  await makeDeployments(client, MANY, workloads, bindings);
  await makeRollouts(client, MANY, bindings);
  const report = async (when: string) => {
    await controller.process.quiet();
    const { resident, most } = await controller.process.memory();
    const what = `resident: ${secrets} Secrets of 1 KiB, ${workloads} workloads, ${bindings} bindings${when}`;
    table.ours(what, `${resident} (most: ${most})`, "200 MB");
  };
  await controller.start();
  await rolledOut(rig, MANY, bindings);
  await report("");
  const restarted = until(rig, deploymentPath(MANY), workloads, (each) => stampOf(each) !== undefined);
  await changeAll(rig, MANY, bindings);
  await restarted;
  await rolledOut(rig, MANY, bindings);
  await report(", after all restarted");
  await controller.stop();
  await dropBindings(client);
}

const changeAll = ({ client }: Rig, namespace: string, count: number) =>
  atOnce(count, WRITERS, (i) =>
    client.merge(secretPath(namespace, `s-${i}`), { stringData: { accessKeyID: `all-${i}` } }),
  );

/** Waits until so many bindings report no pending restart. */
const rolledOut = (rig: Rig, namespace: string, count: number) =>
  until(rig, bindingPath(namespace), count, ({ status }) =>
    status?.conditions?.some(({ type, reason }: AnyObject) => type === "RolledOut" && reason === "RolledOut"),
  );

/** Waits until so many objects have their desired state at the same time. */
async function until(
  { client }: Rig,
  path: string,
  count: number,
  isDone: (object: AnyObject) => boolean,
): Promise<void> {
  const done = new Set<string>();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = await client.watch(path, (object) => {
    if (isDone(object)) done.add(object.metadata.uid);
    else done.delete(object.metadata.uid);
    if (done.size >= count) resolve();
  });
  await promise;
  stop();
}

const nameOf = ({ metadata }: AnyObject): string => metadata.name;
const stampOf = ({ spec }: AnyObject): string | undefined => spec.template.metadata.annotations?.[STAMP];
const isRolledOut = (workload: AnyObject): boolean => !isRolling(workload);
