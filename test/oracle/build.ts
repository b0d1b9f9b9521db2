/** Builds the oracle once for each state of its sources, and keeps it outside of the repository, like the control plane. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { goIn } from "../control-plane/go.ts";
import { lock } from "../control-plane/lock.ts";
import { cacheFolder } from "../control-plane/programs.ts";
import { Progress } from "../control-plane/progress.ts";

const SOURCES = import.meta.dirname;

const go = goIn(
  "These tests compare Inlay with Crossplane's own code, which is built from source the first time, and that needs Go " +
    "(https://go.dev/dl): no `go` was found in the PATH.",
);

/** The path of the program, after building it where that is still to be done. */
export async function findOracle(env: Record<string, string | undefined> = process.env): Promise<string> {
  const program = join(cacheFolder(env, await keyOf(SOURCES), "oracle"), "oracle");
  if (!existsSync(program)) await build(program);
  return program;
}

/** Names a build by everything that decides what it makes: go.mod, go.sum and the sources. */
async function keyOf(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => /\.go$|^go\.(mod|sum)$/.test(name)).sort();
  const files = await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")]));
  const deps = JSON.stringify([files, process.platform, process.arch]);
  return createHash("sha256").update(deps).digest("hex").slice(0, 16);
}

/** Makes the program, or waits while another process makes it. */
async function build(program: string): Promise<void> {
  const unfinished = `${program}.building`;
  await mkdir(dirname(program), { recursive: true });
  const release = await lock(`${program}.lock`, {
    isDone: () => existsSync(program),
    onWait: () => process.stderr.write("Another process builds the oracle; waiting for it.\n"),
  });
  if (release === "done") return;
  try {
    if (existsSync(program)) return;
    await buildInto(unfinished);
    await rename(unfinished, program);
  } catch (error) {
    // If the lock expired during the build, another process may have finished it.
    if (!existsSync(program)) throw error;
  } finally {
    await rm(unfinished, { force: true });
    await release();
  }
}

async function buildInto(program: string): Promise<void> {
  process.stderr.write(
    "Building the oracle (Crossplane's field paths) for the tests. This happens once and takes about a minute on 2 cores; " +
      `it goes to ${dirname(program)}\n`,
  );
  const progress = new Progress(process.stderr);
  let [downloads, packages] = [0, 0];
  progress.show(() => `${downloads} modules fetched, ${packages} packages compiled`);
  try {
    await go(SOURCES, ["build", "-v", "-trimpath", "-ldflags=-s -w", "-o", program, "."], {
      env: { CGO_ENABLED: "0" },
      onMessage: (line) => (line.startsWith("go: downloading ") ? downloads++ : packages++),
    });
  } finally {
    progress.end();
  }
}
