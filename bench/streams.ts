/**
 * Bindings that name a thousand objects each, which their accounts may not watch, or may watch only by name: their effect on the latency of
 * valid bindings in another namespace, on the API server, and on the controller.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { namedDeployment, namingBinding } from "../test/controller/hostile.ts";
import { atOnce } from "./cluster.ts";
import { type Rotations, report, requestsServed, startGood } from "./hostile.ts";
import type { Rig } from "./rig.ts";
import { bindingPath, dropBindings } from "./world.ts";

const GOOD = "beside-naming";
const ROTATIONS = 100;
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
