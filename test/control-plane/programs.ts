/**
 * Where the programs of a control plane are: what comes in is the environment, what goes out are paths. Either
 * KUBEBUILDER_ASSETS names a folder that has them, or they are built once from kubernetes/go.mod into a cache.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { build } from "./build.ts";
import { cacheKey, readRecipe } from "./recipe.ts";

export interface Programs {
  etcd: string;
  apiServer: string;
  /** A bare `kubectl`, looked up in the PATH, where the folder has none. */
  kubectl: string;
  controllerManager?: string;
  scheduler?: string;
  kwok?: { program: string; stages: string };
}

export type Environment = Record<string, string | undefined>;

/** Finds the programs, after building them where that is still to be done. */
export async function findPrograms(env: Environment = process.env): Promise<Programs> {
  const assets = env["KUBEBUILDER_ASSETS"];
  if (assets) return programsIn(assets, "KUBEBUILDER_ASSETS");
  const recipe = await readRecipe(join(import.meta.dirname, "kubernetes"));
  const folder = cacheFolder(env, cacheKey(recipe));
  if (!existsSync(folder)) await build(recipe, folder);
  return programsIn(folder, "The cache");
}

/** Where the programs of one build are kept, outside of the repository. */
export function cacheFolder(env: Environment, key: string, subject = "control-plane"): string {
  const cache = env["INLAY_CACHE"] || join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "inlay");
  return join(cache, subject, key);
}

/** The programs that a folder has; it must have etcd and kube-apiserver. */
export function programsIn(folder: string, called: string): Programs {
  const find = (name: string) => (existsSync(join(folder, name)) ? join(folder, name) : undefined);
  const etcd = find("etcd");
  const apiServer = find("kube-apiserver");
  if (etcd === undefined || apiServer === undefined) {
    const absent = etcd === undefined ? "etcd" : "kube-apiserver";
    throw new Error(`${called} is ${folder}, which has no ${absent}`);
  }
  const controllerManager = find("kube-controller-manager");
  const scheduler = find("kube-scheduler");
  const kwok = find("kwok");
  const stages = find("kwok-stages.yaml");
  return {
    etcd,
    apiServer,
    kubectl: find("kubectl") ?? "kubectl",
    ...(controllerManager && { controllerManager }),
    ...(scheduler && { scheduler }),
    ...(kwok && stages && { kwok: { program: kwok, stages } }),
  };
}
