/**
 * Finds the programs of a control plane: in the folder that KUBEBUILDER_ASSETS names, or in a cache, after building them once
 * from kubernetes/go.mod.
 */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { build } from "./build.ts";
import { cacheKey, readRecipe } from "./recipe.ts";

export interface Programs {
  etcd: string;
  apiServer: string;
  /** A bare `kubectl` from the PATH, if the folder has none. */
  kubectl: string;
  controllerManager?: string;
  scheduler?: string;
  kwok?: { program: string; stages: string };
}

export type Environment = Record<string, string | undefined>;

/** Finds the programs, and builds them if necessary. */
export async function findPrograms(env: Environment = process.env): Promise<Programs> {
  const assets = env["KUBEBUILDER_ASSETS"];
  if (assets) return programsIn(assets, "KUBEBUILDER_ASSETS");
  const recipe = await readRecipe(join(import.meta.dirname, "kubernetes"));
  const folder = cacheFolder(env, cacheKey(recipe));
  if (!existsSync(folder)) await build(recipe, folder);
  return programsIn(folder, "The cache");
}

/** The folder for the programs of one build, outside of the repository. */
export function cacheFolder(env: Environment, key: string, subject = "control-plane"): string {
  const cache = env["INLAY_CACHE"] || join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "inlay");
  return join(cache, subject, key);
}

/** The programs in a folder, which must contain etcd and kube-apiserver. */
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
