/** Runs `inlay` as a separate process, as a user does. Returns its output and its exit code. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { AnyObject } from "./api.ts";
import { foundIn } from "./leak-detector.ts";

const program = join(import.meta.dirname, "..", "..", "src", "main.ts");

/** The width of a wide terminal. */
const COLUMNS = "120";

export interface Said {
  stdout: string;
  stderr: string;
  code: number;
}

/** Asserts that the output contains no value of a Secret. */
export async function inlay(kubeconfig: string, ...args: string[]): Promise<Said> {
  const [command = "", ...rest] = args;
  const all = [program, command, "--kubeconfig", kubeconfig, ...rest];
  const child = spawn(process.execPath, all, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, COLUMNS } });
  const said = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (chunk: string) => {
      said[stream] += chunk;
    });
  }
  const [code] = await once(child, "close");
  assert.deepEqual(foundIn(said.stdout + said.stderr), []);
  return { ...said, code };
}

/**
 * Runs the command with JSON output, and once with text output. A line of text fits the terminal, except for a command to copy.
 */
export async function inlayJson(kubeconfig: string, ...args: string[]): Promise<{ json: AnyObject; text: string }> {
  const [forPrograms, forPeople] = await Promise.all([
    inlay(kubeconfig, ...args, "--output", "json"),
    inlay(kubeconfig, ...args),
  ]);
  assert.equal(forPrograms.code, 0, forPrograms.stderr);
  assert.equal(forPeople.code, 0, forPeople.stderr);
  const wide = forPeople.stdout
    .split("\n")
    .filter((line) => line.length > Number(COLUMNS) && !/^ {2}(kubectl|echo) /.test(line));
  assert.deepEqual(wide, []);
  return { json: JSON.parse(forPrograms.stdout), text: forPeople.stdout };
}
