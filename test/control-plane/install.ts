/** Installs Inlay's kinds, policies and accounts in a control plane. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ControlPlane } from "./control-plane.ts";

const root = join(import.meta.dirname, "..", "..");

export async function install(controlPlane: Pick<ControlPlane, "kubectl">): Promise<void> {
  const kinds = await manifestsIn("apis");
  if (kinds.length > 0) {
    await controlPlane.kubectl("apply", "--server-side", ...filesOf(kinds));
    await controlPlane.kubectl("wait", "--for=condition=Established", "--timeout=60s", ...filesOf(kinds));
  }
  for (const folder of ["deploy/policies", "deploy/manifests"]) {
    const manifests = await manifestsIn(folder);
    if (manifests.length > 0) await controlPlane.kubectl("apply", ...filesOf(manifests));
  }
}

const filesOf = (paths: string[]) => paths.map((path) => `--filename=${path}`);

/** The manifests directly in a folder, or none if the folder does not exist. */
async function manifestsIn(folder: string): Promise<string[]> {
  const names = await readdir(join(root, folder)).catch(() => []);
  return names
    .filter((name) => name.endsWith(".yaml"))
    .sort()
    .map((name) => join(root, folder, name));
}
