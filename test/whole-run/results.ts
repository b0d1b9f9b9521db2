/**
 * The results of each test file of a run, which are files in the run's folder: the tests with their durations, and the
 * permissions that Inlay used according to the audit log.
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
  /** Includes the hooks before it. */
  ms: number;
  /** The controllers' logs during the test, if it failed. */
  logs: string[];
}

export interface FileResult {
  /** Relative to test/, such as `unit/unspoken.test.ts`. */
  file: string;
  /** Excludes the start of a control plane. */
  ms: number;
  /** The milliseconds before its first test, mostly for the start of a control plane. */
  startMs: number;
  tests: TestResult[];
  /** The controllers' logs, if a hook of the file failed. */
  logs: string[];
  /**
   * The permissions of the controller, and of the accounts for Reloader's annotations and compositions, that this file's requests
   * used.
   */
  rights: string[];
  reloaderRights: string[];
  compositionRights: string[];
  /** Whether logs and requests were searched for values after its tests. */
  isSearched: boolean;
}

/** The folder of this run. `npm test` creates one for all workers. mocha without it uses one that its next run overwrites. */
export const runFolder = process.env["INLAY_TEST_RUN"] ?? join(tmpdir(), "inlay-test");
const resultsFolder = join(runFolder, "results");
const logsFolder = join(runFolder, "logs");

export const nameOf = (file: string): string => relative(join(root, "test"), file).replaceAll(sep, "/");
/** The first folder of a path below test/. */
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
    // A file that could not be loaded has no result.
    return undefined;
  }
}

export async function readResults(): Promise<FileResult[]> {
  const names = await readdir(resultsFolder).catch(() => []);
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(resultsFolder, name), "utf8"))));
}

/** Stores the log of a controller. Returns the file. */
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

/** The file to which the reporter writes one failure per line. */
export const FAILURES = join(runFolder, "failures.jsonl");

export async function readFailures(): Promise<Failure[]> {
  const text = await readFile(FAILURES, "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
