/** What a platform does to have Reloader's annotations understood, by the files and commands that are shipped; and undoes it. */
import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { controlPlane } from "../control-plane/shared.ts";
import type { AnyObject } from "./api.ts";
import { ControllerProcess } from "./controller.ts";
import { eventually } from "./eventually.ts";
import { CONTROLLER } from "./requests.ts";
import { stopSharedController } from "./shared.ts";
import type { Team } from "./team.ts";

export const reloaderFile = join(import.meta.dirname, "..", "..", "deploy", "manifests", "optional", "reloader.yaml");
const JOBS = "inlay-reloader-jobs";
export const RELOADER = "system:serviceaccount:inlay-system:inlay-reloader";
export const MADE_FOR_RELOADER = "inlay.dev/made-for=reloader";

export const may = (who: string, ...what: string[]) => controlPlane().kubectl("auth", "can-i", ...what, `--as=${who}`);

/** Grants the account its role in the whole cluster, or in namespaces. */
export async function installReloader(...namespaces: string[]): Promise<void> {
  await stopSharedController();
  await controlPlane().kubectl("apply", `--filename=${reloaderFile}`);
  const grant = ["inlay-reloader", "--clusterrole=inlay-reloader", "--serviceaccount=inlay-system:inlay-reloader"];
  if (namespaces.length === 0) await controlPlane().kubectl("create", "clusterrolebinding", ...grant);
  for (const namespace of namespaces)
    await controlPlane().kubectl("create", "rolebinding", ...grant, `--namespace=${namespace}`);
  const where = namespaces.length === 0 ? ["--all-namespaces"] : [`--namespace=${namespaces.at(-1)}`];
  await eventually(() => may(RELOADER, "watch", "secrets", ...where));
  await eventually(() => may(CONTROLLER, "impersonate", "serviceaccounts/inlay-reloader", "--namespace=inlay-system"));
}

/** Lets the account make Jobs anew in the whole cluster, beside. */
export async function allowJobs(): Promise<void> {
  const account = "--serviceaccount=inlay-system:inlay-reloader";
  await controlPlane().kubectl("create", "clusterrolebinding", JOBS, `--clusterrole=${JOBS}`, account);
  await eventually(() => may(RELOADER, "delete", "jobs", "--all-namespaces"));
}

/** Once no controller goes by it any more. */
export async function removeReloader(): Promise<void> {
  await controlPlane().kubectl("delete", "clusterrolebinding", "inlay-reloader", JOBS, "--ignore-not-found");
  await controlPlane().kubectl("delete", `--filename=${reloaderFile}`);
  await controlPlane().kubectl("delete", "secretbindings", "--all-namespaces", `--selector=${MADE_FOR_RELOADER}`);
  await eventually(() =>
    assert.rejects(may(CONTROLLER, "impersonate", "serviceaccounts/inlay-reloader", "--namespace=inlay-system")),
  );
}

/** A controller with that configuration, not started yet. */
export async function reloading(reloader: object, more: object = {}): Promise<ControllerProcess> {
  return new ControllerProcess(controlPlane(), "--config", await configFile(reloader, more));
}

/**
 * Has a controller, for `act` to start, that understands annotations in these namespaces alone, where the account has its
 * role; afterwards nothing of either is there.
 */
export async function whileReloading(
  namespaces: string[],
  rules: object,
  act: (controller: ControllerProcess) => Promise<void>,
): Promise<void> {
  await installReloader(...namespaces);
  const controller = await reloading({ namespaces, ...rules });
  try {
    await act(controller);
  } finally {
    await controller.stop();
    await removeReloader();
  }
}

export async function configFile(reloader: object, more: object = {}): Promise<string> {
  const file = join(await mkdtemp(join(controlPlane().folder, "config-")), "config.yaml");
  const config = { apiVersion: "config.inlay.dev/v1alpha1", kind: "ControllerConfiguration", reloader, ...more };
  await writeFile(file, JSON.stringify(config));
  return file;
}

/** The bindings that were made of annotations in a namespace. */
export async function madeIn(team: Team): Promise<AnyObject[]> {
  const path = team.path("inlay.dev/v1alpha1", "secretbindings");
  return (await team.api.get(`${path}?labelSelector=${MADE_FOR_RELOADER}`)).items;
}

/** Waits until there are these, each has what its workload has by now, and nothing is left to do. */
export function untilMade(team: Team, names: readonly string[], withinMs = 30_000): Promise<AnyObject[]> {
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
