/**
 * Builds the control plane's programs: what comes in is the recipe, what goes out is a folder that holds all of them or
 * is not there at all. The work is done in a folder beside it, under a lock, and ends with one rename.
 */
import { existsSync, readdirSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { goIn } from "./go.ts";
import { lock } from "./lock.ts";
import { Progress } from "./progress.ts";
import type { Recipe } from "./recipe.ts";

/** The folders of KWOK's module that say how a node and a pod come to life. */
const stageFolders = ["node/fast", "node/heartbeat", "pod/fast"];

/** Makes `folder`, or waits while another process makes it. */
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
    // A build that slept through its lock's expiry finds that another one has done the work.
    if (!existsSync(folder)) throw error;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
    await release();
  }
}

async function buildInto(gobin: string, recipe: Recipe): Promise<void> {
  const programs = toolsOf(recipe.goMod);
  // Whether there is a Go, and one that is new enough or fetches what is, is known at once.
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

    // With -v, go names each package that it compiles; what its own cache has is not named.
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

/** How many programs the `tool` block of a go.mod names. */
function toolsOf(goMod: string): number {
  const block = /^tool \(\n([^)]*)\)/m.exec(goMod)?.[1] ?? "";
  return block.trim().split("\n").length;
}

/** Every stage in one file, so that a later start needs no Go. */
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
