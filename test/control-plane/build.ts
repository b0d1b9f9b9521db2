/**
 * Builds the control plane's programs into a folder, completely or not at all. It builds in a second folder, under a lock, and
 * renames that at the end.
 */
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { goIn } from "./go.ts";
import { lock } from "./lock.ts";
import { Progress } from "./progress.ts";
import type { Recipe } from "./recipe.ts";

/** The folders of KWOK's module with the stages of nodes and pods. */
const stageFolders = ["node/fast", "node/heartbeat", "pod/fast"];

/** Builds `folder`, or waits while another process builds it. */
export async function build(recipe: Recipe, folder: string): Promise<void> {
  const unfinished = `${folder}.building`;
  await mkdir(dirname(folder), { recursive: true });
  const release = await lock(`${folder}.lock`, {
    isDone: () => existsSync(folder),
    onWait: () => process.stderr.write("Another process builds the control plane; waiting for it.\n"),
  });
  if (release === "done") return;
  try {
    if (existsSync(folder)) return;
    await mkdir(unfinished, { recursive: true });
    await buildInto(unfinished, recipe);
    await rename(unfinished, folder);
  } catch (error) {
    // If the lock expired during the build, another process may have finished it.
    if (!existsSync(folder)) throw error;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
    await release();
  }
}

async function buildInto(gobin: string, recipe: Recipe): Promise<void> {
  const programs = toolsOf(recipe.goMod);
  // Fails at once if Go is missing, or is too old and can't download a newer version.
  await go(recipe.folder, ["version"], {});
  process.stderr.write(
    "Building a real control plane (etcd, Kubernetes, KWOK) for the tests. This happens once and takes about " +
      `5 minutes on 2 cores; it goes to ${dirname(gobin)}\n`,
  );
  const progress = new Progress(process.stderr);
  try {
    let downloads = 0;
    let total = 0;
    progress.show(() => `fetching modules: ${downloads} so far`);
    await go(recipe.folder, ["list", "-deps", "tool"], {
      onOutput: () => total++,
      onMessage: (line) => line.startsWith("go: downloading ") && downloads++,
    });

    // With -v, go prints each package that it compiles, except for cached ones.
    let packages = 0;
    progress.show(() => {
      const finished = readdirSync(gobin).length;
      return `${finished} of ${programs} programs done, ${packages} of at most ${total} packages compiled`;
    });
    await go(recipe.folder, ["install", "-v", `-ldflags=${recipe.ldflags}`, "tool"], {
      env: { CGO_ENABLED: "0", GOBIN: gobin },
      onMessage: (line) => /^[\w./~-]+$/.test(line) && packages++,
    });
    await rename(join(gobin, "server"), join(gobin, "etcd"));
    await writeFile(join(gobin, "kwok-stages.yaml"), await kwokStages(recipe));
  } finally {
    progress.end();
  }
}

/** The number of programs in the `tool` block of a go.mod. */
function toolsOf(goMod: string): number {
  const block = /^tool \(\n([^)]*)\)/m.exec(goMod)?.[1] ?? "";
  return block.trim().split("\n").length;
}

/** All stages in one file, so that later starts need no Go. */
async function kwokStages(recipe: Recipe): Promise<string> {
  let module = "";
  await go(recipe.folder, ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"], {
    onOutput: (line) => {
      module = line;
    },
  });
  const documents: string[] = [];
  for (const stageFolder of stageFolders) {
    const folder = join(module, "kustomize", "stage", stageFolder);
    for (const name of (await readdir(folder)).sort()) {
      if (!name.endsWith(".yaml") || name === "kustomization.yaml") continue;
      documents.push(await readFile(join(folder, name), "utf8"));
    }
  }
  return documents.join("\n---\n");
}

const go = goIn(
  "The tests run against a real Kubernetes API server, which is built from source the first time, and that needs Go " +
    "(https://go.dev/dl): no `go` was found in the PATH. Or let KUBEBUILDER_ASSETS name a folder that has etcd and " +
    "kube-apiserver, such as setup-envtest makes.",
);
