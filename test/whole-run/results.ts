/**
 * What each test file of a run leaves for the last step, as a file in the run's folder: the tests with their durations,
 * and what the audit log shows that Inlay used.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";

const root = join(import.meta.dirname, "..", "..");
export const FOLDERS_ON_CONTROL_PLANE = ["integration", "demand", "e2e", "faults"];

export interface TestResult {
  title: string;
  state: "passed" | "failed" | "pending";
  /** With the hooks that ran before it. */
  ms: number;
  /** Files that hold what controllers logged meanwhile, for a test that failed. */
  logs: string[];
}

export interface FileResult {
  /** Below test/, such as `unit/unspoken.test.ts`. */
  file: string;
  /** Without the start of a control plane. */
  ms: number;
  /** The milliseconds before its tests began: those that a control plane takes to start, where it started one. */
  startMs: number;
  tests: TestResult[];
  /** Files that hold what controllers logged, for a file of which a hook failed. */
  logs: string[];
  /** Rights of the controller, and of the accounts for Reloader's annotations and compositions, that requests of this file used. */
  rights: string[];
  reloaderRights: string[];
  compositionRights: string[];
  /** Whether logs and requests were searched after its tests. */
  isSearched: boolean;
}

/** The folder of this run: `npm test` makes one for all workers. mocha by itself has one that its next run overwrites. */
export const runFolder = process.env["INLAY_TEST_RUN"] ?? join(tmpdir(), "inlay-test");
const resultsFolder = join(runFolder, "results");
const logsFolder = join(runFolder, "logs");

export const nameOf = (file: string): string => relative(join(root, "test"), file).replaceAll(sep, "/");
/** The first folder below test/. */
export const partOf = (name: string): string => name.split("/")[0] ?? "";
export const isOnControlPlane = (file: string): boolean => FOLDERS_ON_CONTROL_PLANE.includes(partOf(nameOf(file)));

const flat = (name: string) => name.replaceAll("/", "--").replace(/\.test\.ts$/, "");

export async function writeResult(result: FileResult): Promise<void> {
  mkdirSync(resultsFolder, { recursive: true });
  await writeFile(join(resultsFolder, `${flat(result.file)}.json`), JSON.stringify(result));
}

export function readResult(name: string): FileResult | undefined {
  try {
    return JSON.parse(readFileSync(join(resultsFolder, `${flat(name)}.json`), "utf8"));
  } catch {
    // A file that could not be loaded has none.
    return undefined;
  }
}

export async function readResults(): Promise<FileResult[]> {
  const names = await readdir(resultsFolder).catch(() => []);
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(resultsFolder, name), "utf8"))));
}

/** Keeps what a controller logged. Returns the file. */
export async function keepLog(file: string, number: number, text: string): Promise<string> {
  mkdirSync(logsFolder, { recursive: true });
  const path = join(logsFolder, `${flat(file)}-${number}.log`);
  await writeFile(path, text);
  return path;
}

/** A test or hook that failed. */
export interface Failure {
  file: string;
  title: string;
  text: string;
}

/** Where the reporter writes failures down, one in a line. */
export const FAILURES = join(runFolder, "failures.jsonl");

export async function readFailures(): Promise<Failure[]> {
  const text = await readFile(FAILURES, "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
