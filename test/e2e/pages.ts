/**
 * Runs a page word for word: the commands of its blocks from the top of the repository, beside a controller with the permissions of
 * deploy/manifests. A block of plain text directly after the commands has to be what they print. Inlay may write Warning events only with
 * reasons that the page names.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { controlPlane } from "../control-plane/shared.ts";
import { type AnyObject, Api } from "../controller/api.ts";
import { eventually } from "../controller/eventually.ts";
import { helmProgram } from "../helm/program.ts";

export const root = join(import.meta.dirname, "..", "..");
const run = promisify(execFile);

/** The commands of a block, and what they print, if that is shown. */
export interface Step {
  commands: string;
  prints: string | undefined;
}

/** The folders in a folder of the repository. */
export const foldersIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((each) => each.isDirectory())
    .map(({ name }) => name);

/** Those that a page lists in a table, by the links to their pages. */
export async function foldersLinkedFrom(page: string): Promise<string[]> {
  const text = await readFile(join(root, page), "utf8");
  return [...text.matchAll(/^\| \[.*?\]\(([a-z-]+)\/README\.md\)/gm)].map(([, folder = ""]) => folder);
}

/** Where the commands of a page run. */
export interface Place {
  cluster: ControlPlane;
  /** The root of the repository, or a folder with the same files. */
  folder: string;
}

const sharedPlace = (): Place => ({ cluster: controlPlane(), folder: root });

/**
 * Runs all commands of a page, with the environment variables that it asks its readers to set. Returns them. `taken` is called after each
 * step, for what no cluster of a test does by itself. Fails for warnings of Inlay whose reasons neither the page nor `expected` names.
 */
export async function runPage(
  page: string,
  env: NodeJS.ProcessEnv = {},
  taken: (step: Step) => Promise<void> = async () => {},
  place = sharedPlace(),
  expected: readonly string[] = [],
): Promise<Step[]> {
  return runText(page, await readFile(join(root, page), "utf8"), env, taken, place, expected);
}

/** Runs all commands below a heading of a page, up to the next heading of the same level. */
export async function runSection(page: string, heading: string, env: NodeJS.ProcessEnv, place: Place): Promise<void> {
  const text = await readFile(join(root, page), "utf8");
  const level = /^#+ /.exec(heading)?.[0];
  const start = text.indexOf(`\n${heading}\n`);
  assert.ok(start >= 0, `${page} has no heading ${heading}`);
  const end = text.indexOf(`\n${level}`, start + heading.length);
  await runText(page, text.slice(start, end < 0 ? undefined : end), env, async () => {}, place);
}

async function runText(
  page: string,
  text: string,
  env: NodeJS.ProcessEnv,
  taken: (step: Step) => Promise<void>,
  place: Place,
  expected: readonly string[] = [],
): Promise<Step[]> {
  const steps = stepsOf(text);
  const ended = new AbortController();
  const warned = warningsUntil(ended.signal, new Api(place.cluster));
  try {
    for (const step of steps) {
      await take(step, env, place);
      await taken(step);
    }
  } finally {
    ended.abort();
  }
  const unnamed = (await warned).filter(({ reason }) => !text.includes(reason) && !expected.includes(reason));
  const messages = unnamed.map(({ reason, note }) => `${reason}: ${note}`);
  assert.deepEqual(messages, [], `${page} does not name these warnings`);
  return steps;
}

const WATCH_SECONDS = 600;

/** The Warning events of Inlay from now until the signal aborts. */
async function warningsUntil(ended: AbortSignal, api: Api): Promise<AnyObject[]> {
  const path = "/apis/events.k8s.io/v1/events";
  const before = new Set((await api.get(path)).items.map(({ metadata }: AnyObject) => metadata.uid));
  const found: AnyObject[] = [];
  try {
    for await (const { type, object } of api.watch(path, WATCH_SECONDS, ended)) {
      const isOurs = object["reportingController"] === "inlay.dev/controller" && object["type"] === "Warning";
      if (type === "ADDED" && isOurs && !before.has(object.metadata.uid)) found.push(object);
    }
  } catch (error) {
    if (!ended.aborted) throw error;
  }
  return found;
}

export function stepsOf(markdown: string): Step[] {
  const blocks = [...markdown.matchAll(/^```sh\n(.*?)^```\n+(?:```text\n(.*?)^```\n)?/gms)];
  return blocks.map(([, commands = "", prints]) => ({ commands, prints }));
}

const READS = /^(kubectl (get|describe) .*|\s*#.*)$/;

/** Commands that only read are repeated until they print what the page shows. All others run once. */
async function take({ commands, prints }: Step, env: NodeJS.ProcessEnv, place: Place): Promise<void> {
  const compare = (printed: string) => assert.equal(alike(printed), alike(prints ?? printed), commands);
  const isRead = commands
    .trim()
    .split("\n")
    .every((line) => READS.test(line));
  if (prints === undefined || !isRead) compare(await shell(commands, env, place));
  else await eventually(async () => compare(await shell(commands, env, place)));
}

/** Commands that take longer belong in a console block. */
const COMMAND_WITHIN_MS = 90_000;

/** Returns what the commands print. */
export async function shell(commands: string, more: NodeJS.ProcessEnv = {}, place = sharedPlace()): Promise<string> {
  const { kubectlProgram, kubeconfigFile, folder: home } = place.cluster;
  // Only pages on installation use Helm, which is built first if necessary.
  const helm = /^helm /m.test(commands) ? [dirname(await helmProgram())] : [];
  const path = [await folderOfNpx(home), dirname(kubectlProgram), ...helm, process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH: path, HOME: home, KUBECONFIG: kubeconfigFile, ...more };
  return (await run("sh", ["-ec", commands], { cwd: place.folder, env, timeout: COMMAND_WITHIN_MS })).stdout;
}

/** `npx inlay` is this source in these commands, so that they need no build. test/e2e/readme.test.ts runs what is built. */
async function folderOfNpx(within: string): Promise<string> {
  const folder = join(within, "npx");
  await mkdir(folder, { recursive: true });
  const main = join(root, "src", "main.ts");
  await writeFile(join(folder, "npx"), `#!/bin/sh\nshift\nexec "${process.execPath}" "${main}" "$@"\n`, {
    mode: 0o755,
  });
  return folder;
}

/** Ages differ, and the width of columns with them. */
function alike(printed: string): string {
  return printed
    .replaceAll(/(^|(?<=\s))\d+[smhd](\d+[smh])?$/gm, "AGE")
    .replaceAll(/^\d+[smh](\d+[smh])?(?= )/gm, "AGE")
    .replaceAll(/ {2,}/g, " ")
    .replaceAll(/ +$/gm, "")
    .trim();
}
