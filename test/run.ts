/**
 * Runs all tests, some of them one by one at the end, and then test/whole-run, which checks the results of the run. Or it runs the files that you name, or with
 * --scaled the files with scale cases. It prints a line for each file that has ended, and at the end the failures, tables
 * of durations, and `N passed, N failed`.
 *
 * Usage: node test/run.ts [--random=SEED] [--jobs=N] [--scaled] [FILE...]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";

const root = join(import.meta.dirname, "..");
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { random: { type: "string" }, jobs: { type: "string" }, scaled: { type: "boolean", default: false } },
});

/** The longest files come first, so that no worker starts one of them when the others have finished. */
const PARTS = ["e2e", "faults", "demand", "integration", "unit"];
/**
 * These files run one by one when the others have ended. They load the machine so much that tests beside them wait too long, and their
 * controller loses its lease if other tests load the machine as well.
 */
const ALONE = ["test/faults/attacks.test.ts", "test/integration/hostile.test.ts"];

const folder = mkdtempSync(join(tmpdir(), "inlay-test-"));
process.env["INLAY_TEST_RUN"] = folder;
// Modules read results and tables from this folder when they load.
const { printSummary } = await import("./whole-run/summary.ts");
const { isBuilt } = await import("./control-plane/go-program.ts");
const { GO_PROGRAMS } = await import("./control-plane/go-programs.ts");
const { neededPrograms } = await import("./whole-run/needed-programs.ts");

const isWhole = positionals.length === 0 && !values.scaled;
const files = positionals.length > 0 ? positionals.map((file) => relative(root, resolve(file))) : allFiles();
const missing = files.filter((file) => !existsSync(join(root, file)));
if (missing.length > 0) throw new Error(`there is no ${missing.join(" and no ")}`);
if (values.random !== undefined) shuffle(files, values.random || `${Date.now()}`);

const needed = new Map(files.map((file) => [file, file.endsWith(".ts") ? neededPrograms(join(root, file)) : []]));
const areNeeded = GO_PROGRAMS.filter((program) => [...needed.values()].some((all) => all.includes(program)));
const areBuilt = await Promise.all(areNeeded.map((program) => isBuilt(program)));
const unbuilt = areNeeded.filter((_, index) => !areBuilt[index]).map(({ name }) => name);
let stopBuild = () => {};
if (unbuilt.length > 0) {
  stopBuild = buildBeside(unbuilt);
  // The files that wait longest for a program come last.
  const waiting = (file: string) => Math.max(-1, ...(needed.get(file) ?? []).map(({ name }) => unbuilt.indexOf(name)));
  if (values.random === undefined) files.sort((one, other) => waiting(one) - waiting(other));
}

const isAlone = (file: string) => files.length > 1 && ALONE.includes(file);
const besideOthers = files.filter((file) => !isAlone(file));
const codes: number[] = [];
if (besideOthers.length > 0)
  codes.push(await mocha(besideOthers, values.jobs === undefined ? [] : ["--jobs", values.jobs]));
for (const file of files.filter(isAlone)) codes.push(await mocha([file], ["--no-parallel"]));
if (isWhole) codes.push(await mocha(["test/whole-run"], ["--no-parallel"]));
stopBuild();
const isGreen = codes.every((code) => code === 0);
await printSummary(isGreen);
if (isGreen) await rm(folder, { recursive: true });
else process.exitCode = 1;

function allFiles(): string[] {
  const all = PARTS.flatMap((part) => globSync(`test/${part}/**/*.test.ts`, { cwd: root }).sort());
  return values.scaled ? all.filter((file) => readFileSync(join(root, file), "utf8").includes("/scale.ts")) : all;
}

/** Orders the files by the seed. */
function shuffle(files: string[], seed: string): void {
  console.log(`Files in random order: --random=${seed}`);
  let state = [...seed].reduce((hash, char) => (Math.imul(hash, 31) + char.charCodeAt(0)) | 0, 7);
  const random = () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
  for (let last = files.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [files[last], files[other]] = [files[other] as string, files[last] as string];
  }
}

/**
 * Builds Go programs while the first files run. Returns a function that stops the build. The build has ended when the files
 * that need the programs have run.
 */
function buildBeside(names: string[]): () => void {
  const program = join(root, "test", "control-plane", "build-go-programs.ts");
  // The build has its own process group, so that its compilers end with it. A pipe limits its progress to a line now and
  // then.
  const child = spawn(process.execPath, [program, ...names], {
    cwd: root,
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  child.stderr.pipe(process.stderr);
  // If this fails, the files that need the programs build them themselves and report the reason.
  child.on("exit", (code) => code !== null && code > 0 && console.error("A build beside the tests failed."));
  return () => {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) process.kill(-child.pid);
  };
}

async function mocha(specs: string[], flags: string[]): Promise<number> {
  const program = join(root, "node_modules", "mocha", "bin", "mocha.js");
  const args = [program, ...flags, "--reporter", "./test/whole-run/progress.ts", ...specs];
  const env = { ...process.env, INLAY_TEST_FILES: `${specs.length}` };
  const child = spawn(process.execPath, args, { cwd: root, stdio: "inherit", env });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, "exit");
  return code ?? 1;
}
