/** Installs and removes the shipped manifest for Reloader's annotations. */
import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import { type Access, untilMay, untilMayNot } from "./access.ts";
import { type AnyObject, Api } from "./api.ts";
import { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";
import { applyFile, deleteFile, deleteObjects } from "./manifests.ts";
import { lineOfPage, paste } from "./paste.ts";
import { CONTROLLER } from "./requests.ts";
import { stopSharedController } from "./shared.ts";
import type { TestNamespace } from "./test-namespace.ts";
import { PULSE } from "./workloads.ts";

const root = join(import.meta.dirname, "..", "..");
const FILE = "deploy/manifests/optional/reloader.yaml";
export const reloaderFile = join(root, FILE);
/** The page in docs/ with the commands. */
const PAGE = "../compositions/reloader/README.md";
const ROLE = "inlay-reloader";
const JOBS = "inlay-reloader-jobs";
const CRON_JOBS = "inlay-reloader-cronjobs";
export const RELOADER = "system:serviceaccount:inlay-system:inlay-reloader";
export const GENERATED_FOR_RELOADER = "inlay.dev/generated-for=reloader";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const actAsReloader: Access = {
  verb: "impersonate",
  resource: "serviceaccounts",
  name: "inlay-reloader",
  namespace: "inlay-system",
};

/** Applies the manifest, and grants the account its role in the whole cluster, or in namespaces. */
export async function installReloader(...namespaces: string[]): Promise<void> {
  await stopSharedController();
  const api = new Api(controlPlane());
  await applyFile(api, reloaderFile);
  if (namespaces.length === 0) await bindRole(api, ROLE);
  for (const namespace of namespaces) await bindRole(api, ROLE, namespace);
  await untilInstalled(namespaces);
}

/** Does the same in the whole cluster with the commands of the page for Reloader users. */
export async function installReloaderByPage(): Promise<void> {
  await stopSharedController();
  await paste((await lineOfPage(PAGE, `kubectl apply -f ${FILE}`)).replace(FILE, reloaderFile));
  await paste(await lineOfPage(PAGE, `kubectl create clusterrolebinding ${ROLE} `));
  await untilInstalled([]);
}

async function untilInstalled(namespaces: readonly string[]): Promise<void> {
  for (const namespace of namespaces.length === 0 ? [undefined] : namespaces)
    await untilMay(RELOADER, { verb: "watch", resource: "secrets", namespace });
  await untilMay(CONTROLLER, actAsReloader);
}

/** Allows the account to recreate Jobs as well, in the whole cluster or in a namespace. */
export async function allowJobs(namespace?: string): Promise<void> {
  await bindRole(new Api(controlPlane()), JOBS, namespace);
  await untilMay(RELOADER, { verb: "delete", group: "batch", resource: "jobs", namespace });
}

/** Allows the account to run CronJobs at once, in the whole cluster. */
export async function allowCronJobs(): Promise<void> {
  await bindRole(new Api(controlPlane()), CRON_JOBS);
  await untilMay(RELOADER, { verb: "create", group: "batch", resource: "jobs" });
}

/** Grants the account a ClusterRole in the whole cluster, or in a namespace, by a binding of the same name. */
export async function bindRole(api: Api, name: string, namespace?: string): Promise<void> {
  const where = namespace === undefined ? "clusterrolebindings" : `namespaces/${namespace}/rolebindings`;
  await api.create(`${RBAC}/${where}`, {
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
    subjects: [{ kind: "ServiceAccount", name: "inlay-reloader", namespace: "inlay-system" }],
  });
}

/** Removes the manifest and its permissions. Stop the controller first. */
export async function removeReloader(): Promise<void> {
  const api = new Api(controlPlane());
  for (const name of [ROLE, JOBS, CRON_JOBS]) await api.remove(`${RBAC}/clusterrolebindings/${name}`);
  await deleteFile(api, reloaderFile);
  const made = `/apis/inlay.dev/v1alpha1/secretbindings?labelSelector=${GENERATED_FOR_RELOADER}`;
  await deleteObjects(api, (await api.get(made)).items);
  await untilMayNot(CONTROLLER, actAsReloader);
}

/** Creates a controller with that configuration, without starting it. */
export async function reloading(reloader: object, more: object = {}): Promise<ControllerProcess> {
  return new ControllerProcess(controlPlane(), "--config", await configFile(reloader, more));
}

export async function configFile(reloader: object, more: object = {}): Promise<string> {
  const file = join(await mkdtemp(join(controlPlane().folder, "config-")), "config.yaml");
  // Without a debounce, each change causes one restart, which tests count.
  const rules = { debounce: "0s", ...reloader };
  // A barrier restarts its Deployment twice.
  const rollouts = { maxRestarts: "Unlimited" };
  const head = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration" };
  const config = { ...head, reloader: rules, rollouts, ...more };
  await writeFile(file, JSON.stringify(config));
  return file;
}

/** The binding of the Deployment that a barrier restarts. It is not part of what is tested. */
export const PULSE_BINDING = `reloader-deployment-${PULSE}`;

/** The bindings in a namespace that were generated from annotations. */
export async function madeIn(team: TestNamespace): Promise<AnyObject[]> {
  const path = team.path("inlay.dev/v1alpha1", "secretbindings");
  const { items } = await team.api.get(`${path}?labelSelector=${GENERATED_FOR_RELOADER}`);
  return items.filter(({ metadata }: AnyObject) => metadata.name !== PULSE_BINDING);
}

/** Waits until exactly these bindings exist, match their workloads, and have nothing left to do. */
export function untilMade(team: TestNamespace, names: readonly string[], withinMs = 30_000): Promise<AnyObject[]> {
  return eventually(async () => {
    const made = await madeIn(team);
    assert.deepEqual(made.map(({ metadata }) => metadata.name).sort(), [...names].sort());
    for (const { metadata, status } of made) {
      const said = status?.conditions?.map(({ type, status, observedGeneration }: AnyObject) => [
        type,
        status,
        observedGeneration,
      ]);
      const [ready, rolled] = ["Ready", "RolledOut"].map((type) => [type, "True", metadata.generation]);
      assert.deepEqual(said, [ready, rolled], JSON.stringify([metadata.name, status]));
    }
    return made;
  }, withinMs);
}
