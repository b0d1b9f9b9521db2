/**
 * Runs a page word for word: the commands of its blocks from the top of the repository, beside a controller with the rights of
 * deploy/manifests. What a block of plain text shows is what the commands before it print.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { controlPlane } from "../control-plane/shared.ts";
import { eventually } from "../controller/eventually.ts";

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

/**
 * Runs all commands of a page, with the environment variables that it asks its readers to set. Returns them. `taken` is called after each
 * step, for what no cluster of a test does by itself.
 */
export async function runPage(
  page: string,
  env: NodeJS.ProcessEnv = {},
  taken: (step: Step) => Promise<void> = async () => {},
): Promise<Step[]> {
  const steps = stepsOf(await readFile(join(root, page), "utf8"));
  for (const step of steps) {
    await take(step, env);
    await taken(step);
  }
  return steps;
}

export function stepsOf(markdown: string): Step[] {
  const blocks = [...markdown.matchAll(/^```sh\n(.*?)^```\n+(?:```text\n(.*?)^```\n)?/gms)];
  return blocks.map(([, commands = "", prints]) => ({ commands, prints }));
}

/** Changes are made once; what is only looked at is looked at until it has come about. */
async function take({ commands, prints }: Step, env: NodeJS.ProcessEnv): Promise<void> {
  if (prints === undefined) await shell(commands, env);
  else {
    for (const line of commands.trim().split("\n")) assert.match(line, /^kubectl (get|describe) /);
    await eventually(async () => assert.equal(alike(await shell(commands, env)), alike(prints)));
  }
}

/** Returns what the commands print. */
export async function shell(commands: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
  const { kubectlProgram, folder } = controlPlane();
  const path = [dirname(kubectlProgram), process.env["PATH"]].join(delimiter);
  const env = { ...process.env, PATH: path, HOME: folder, ...more };
  return (await run("sh", ["-ec", commands], { cwd: root, env })).stdout;
}

/** Ages differ, and the width of columns with them. */
function alike(printed: string): string {
  return printed
    .replaceAll(/\b\d+[smh](\d+s)?$/gm, "AGE")
    .replaceAll(/ {2,}/g, " ")
    .trim();
}
