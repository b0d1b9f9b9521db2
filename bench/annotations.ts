/**
 * Restarts by annotations of Reloader, for some values of reloader.debounce: the time until a single change has changed the pod template,
 * next to a client that patches the template itself, and the number of pod templates for many changes in a short time.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Api } from "../test/controller/api.ts";
import { applyFile } from "../test/controller/manifests.ts";
import { deployment } from "../test/controller/workloads.ts";
import type { AnyObject } from "./cluster.ts";
import { BuiltController } from "./processes.ts";
import type { Rig } from "./rig.ts";
import { median, ms } from "./table.ts";
import { bindingPath, deploymentPath, makeNamespace, secretPath } from "./world.ts";

const NAMESPACE = "annotated";
const [OURS, FLOOR] = ["ours", "floor"];
const DEBOUNCES = ["0s", "100ms", "250ms", "500ms", "1s"];
const ROUNDS = 20;
const CHANGES = 40;
const WITHIN_MS = 2_000;
const REST_MS = 3_000;
const MANIFEST = join(import.meta.dirname, "..", "deploy", "manifests", "optional", "reloader.yaml");
const ROLE = "inlay-reloader";
/** The one workload restarts for each change. */
const rollouts = { maxRestarts: "Unlimited" };

export async function measureAnnotations(rig: Rig): Promise<void> {
  const { client, cluster, table } = rig;
  await makeNamespace(client, NAMESPACE);
  await applyFile(new Api(cluster), MANIFEST);
  await client.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    metadata: { name: ROLE },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: ROLE },
    subjects: [{ kind: "ServiceAccount", name: ROLE, namespace: "inlay-system" }],
  });
  for (const name of [OURS, FLOOR]) {
    await client.send("POST", secretPath(NAMESPACE), { metadata: { name }, stringData: { token: "token" } });
    const object = deployment(name, { envFrom: [name], replicas: 0 }) as AnyObject;
    if (name === OURS) object.metadata.annotations = { "reloader.stakater.com/auto": "true" };
    await client.send("POST", deploymentPath(NAMESPACE), object);
  }
  const templates = new Templates();
  const stop = await client.watch(deploymentPath(NAMESPACE), (object, at) => templates.seen(object, at));
  const floor = await latency(templates, FLOOR, async (value) => {
    await client.merge(secretPath(NAMESPACE, FLOOR), { stringData: { token: value } });
    const template = { metadata: { annotations: { restarted: value } } };
    await client.merge(deploymentPath(NAMESPACE, FLOOR), { spec: { template } });
  });
  const change = (value: string) => client.merge(secretPath(NAMESPACE, OURS), { stringData: { token: value } });
  for (const debounce of DEBOUNCES) {
    const controller = await started(rig, debounce);
    try {
      const ours = await latency(templates, OURS, change);
      await sleep(REST_MS);
      const before = templates.countOf(OURS);
      for (let i = 0; i < CHANGES; i++) {
        const next = performance.now() + WITHIN_MS / CHANGES;
        await change(`${debounce}-${i}`);
        await sleep(Math.max(0, next - performance.now()));
      }
      await sleep(REST_MS);
      table.row(`debounce ${debounce}: restart for a single change, median`, ms(floor), ms(ours));
      const what = `  pod templates for ${CHANGES} changes in ${WITHIN_MS / 1_000} s`;
      table.ours(what, String(templates.countOf(OURS) - before));
    } finally {
      await controller.stop();
    }
  }
  stop();
}

async function started({ client, cluster }: Rig, debounce: string): Promise<BuiltController> {
  const config = join(cluster.folder, "annotations.yaml");
  const head = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };
  await writeFile(config, JSON.stringify({ ...head, reloader: { namespaces: [NAMESPACE], debounce }, rollouts }));
  const controller = new BuiltController(cluster, "--log-level", "info", "--config", config);
  await controller.start();
  for (;;) {
    const { items } = await client.send("GET", bindingPath(NAMESPACE));
    const [{ spec, status } = {}] = items;
    const isNow = (spec?.rollout.debounce ?? "0s") === debounce;
    if (isNow && status?.conditions?.every((each: AnyObject) => each.status === "True")) break;
    await sleep(100);
  }
  await controller.process.quiet();
  return controller;
}

/** The median time from a change to the changed pod template, in ms. */
async function latency(templates: Templates, name: string, change: (value: string) => Promise<unknown>) {
  const took: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const changed = templates.next(name);
    const from = performance.now();
    await change(`${performance.now()}`);
    took.push((await changed) - from);
    await sleep(50);
  }
  return median(took);
}

/** The pod templates of Deployments, as a watch shows them. */
class Templates {
  readonly #all = new Map<string, { text: string; count: number }>();
  readonly #waiting = new Map<string, (at: number) => void>();

  seen({ metadata, spec }: AnyObject, at: number): void {
    const text = JSON.stringify(spec.template);
    const known = this.#all.get(metadata.name);
    if (known?.text === text) return;
    this.#all.set(metadata.name, { text, count: (known?.count ?? 0) + 1 });
    this.#waiting.get(metadata.name)?.(at);
  }

  countOf(name: string): number {
    return this.#all.get(name)?.count ?? 0;
  }

  /** When the template changes next. */
  next(name: string): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting.set(name, resolve);
    });
  }
}
