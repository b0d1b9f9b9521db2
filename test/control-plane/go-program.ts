/**
 * Builds a Go program of the tests once for each state of its sources, from a folder with go.mod, go.sum and code. The program is
 * in a cache outside of the repository. The build writes a temporary file, under a lock, and renames it at the end. An environment
 * variable may name an existing program instead.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { goIn } from "./go.ts";
import { lock } from "./lock.ts";
import { cacheFolder, type Environment } from "./programs.ts";
import { Progress } from "./progress.ts";

export interface GoProgram {
  /** The name of the program, and of its folder in the cache. */
  name: string;
  sources: string;
  /** The environment variable that names an existing program. */
  variable?: string;
  /** The package to build: a tool of go.mod, or by default the code in the folder. */
  package?: string;
  /** The name in messages, such as `Vault`. */
  called: string;
  /** How long a build takes, such as `about a minute`. */
  takes: string;
  /** Why Go is needed, for an error message. */
  purpose: string;
}

/** The builds of this process, by path. A failed build is not repeated: it takes minutes, and would fail again. */
const builds = new Map<string, Promise<void>>();

/** The path of the program, which is built if necessary. */
export async function findGoProgram(program: GoProgram, env: Environment = process.env): Promise<string> {
  const path = await goProgramPath(program, env);
  if (isGiven(program, env) || existsSync(path)) return path;
  const started = builds.get(path) ?? build(program, path);
  builds.set(path, started);
  await started;
  return path;
}

export async function isBuilt(program: GoProgram, env: Environment = process.env): Promise<boolean> {
  return existsSync(await goProgramPath(program, env));
}

const isGiven = ({ variable = "" }: GoProgram, env: Environment) => Boolean(env[variable]);

/** The path of the built program, or of the given one. */
export async function goProgramPath(
  { name, sources, variable = "" }: GoProgram,
  env: Environment = process.env,
): Promise<string> {
  return env[variable] || join(cacheFolder(env, await keyOf(sources), name), name);
}

/** Names a build by everything that affects its result: go.mod, go.sum and code, also of modules in other folders. */
async function keyOf(folder: string): Promise<string> {
  const goMod = await readFile(join(folder, "go.mod"), "utf8");
  const folders = [".", ...[...goMod.matchAll(LOCAL_MODULE)].map(([, path = ""]) => path)];
  const files = (await Promise.all(folders.map((each) => sourcesIn(folder, each)))).flat();
  const deps = JSON.stringify([files, process.platform, process.arch]);
  return createHash("sha256").update(deps).digest("hex").slice(0, 16);
}

/** The folder with which a `replace` directive replaces a module. */
const LOCAL_MODULE = /^(?!\s*\/\/).*=>\s+(\.{1,2}\/\S+)/gm;

/** The sources in a folder, each with its path and text. */
async function sourcesIn(base: string, folder: string): Promise<string[][]> {
  const names = (await readdir(join(base, folder))).filter((name) => /\.go$|^go\.(mod|sum)$/.test(name)).sort();
  const paths = names.map((name) => join(folder, name));
  return Promise.all(paths.map(async (path) => [path, await readFile(join(base, path), "utf8")]));
}

/** Builds the program, or waits while another process builds it. */
async function build(program: GoProgram, path: string): Promise<void> {
  const unfinished = `${path}.building`;
  await mkdir(dirname(path), { recursive: true });
  const release = await lock(`${path}.lock`, {
    isDone: () => existsSync(path),
    onWait: () => process.stderr.write(`Another process builds ${program.called}; waiting for it.\n`),
  });
  if (release === "done") return;
  try {
    if (existsSync(path)) return;
    await buildInto(unfinished, program);
    await rename(unfinished, path);
  } catch (error) {
    // If the lock expired during the build, another process may have finished it.
    if (!existsSync(path)) throw error;
  } finally {
    await rm(unfinished, { force: true });
    await release();
  }
}

async function buildInto(
  path: string,
  { sources, package: built = ".", called, takes, purpose }: GoProgram,
): Promise<void> {
  const go = goIn(
    `${purpose} It is built from source the first time, and that needs Go (https://go.dev/dl): no \`go\` was found in the PATH.`,
  );
  process.stderr.write(
    `Building ${called} for the tests. This happens once and takes ${takes} on 2 cores; it goes to ${dirname(path)}\n`,
  );
  const progress = new Progress(process.stderr);
  let [downloads, packages] = [0, 0];
  progress.show(() => `${called}: ${downloads} modules fetched, ${packages} packages compiled`);
  try {
    await go(sources, ["build", "-v", "-trimpath", "-ldflags=-s -w", "-o", path, built], {
      env: { CGO_ENABLED: "0" },
      onMessage: (line) => (line.startsWith("go: downloading ") ? downloads++ : packages++),
    });
  } finally {
    progress.end();
  }
}
