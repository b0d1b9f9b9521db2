/**
 * The recipe for the programs of a control plane: everything that affects a build, from a folder with go.mod and go.sum, and a
 * name for the result.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** The programs to build, and the linker flags without which kubectl and clients would report the version v0.0.0-master. */
export interface Recipe {
  folder: string;
  goMod: string;
  goSum: string;
  ldflags: string;
}

export async function readRecipe(folder: string): Promise<Recipe> {
  const [goMod, goSum] = await Promise.all([
    readFile(join(folder, "go.mod"), "utf8"),
    readFile(join(folder, "go.sum"), "utf8"),
  ]);
  return { folder, goMod, goSum, ldflags: versionFlags(goMod) };
}

/** The linker flags with the version of k8s.io/kubernetes that a go.mod requires. */
export function versionFlags(goMod: string): string {
  const [, version, major, minor] = /^\s*k8s\.io\/kubernetes (v(\d+)\.(\d+)\.\S+)/m.exec(goMod) ?? [];
  if (version === undefined) throw new Error("go.mod does not require k8s.io/kubernetes");
  const stamp = (name: string, value: string | undefined) => `-X k8s.io/component-base/version.${name}=${value}`;
  return ["-s -w", stamp("gitVersion", version), stamp("gitMajor", major), stamp("gitMinor", minor)].join(" ");
}

/** Names a build by everything that affects its result. */
export function cacheKey(recipe: Pick<Recipe, "goMod" | "goSum" | "ldflags">): string {
  const deps = [recipe.goMod, recipe.goSum, recipe.ldflags, process.platform, process.arch];
  return createHash("sha256").update(JSON.stringify(deps)).digest("hex").slice(0, 16);
}
