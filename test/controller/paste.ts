/** Runs the commands of a message or page as a reader would. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { controlPlane } from "../control-plane/shared.ts";

const root = join(import.meta.dirname, "..", "..");

/** The commands in a message. */
export function commandsIn(message: string): string {
  const [, commands] = /: ((?:kubectl|echo) .*)$/s.exec(message) ?? [];
  assert.ok(commands, message);
  return commands;
}

/** A line of a page in docs/. */
export async function lineOfPage(page: string, beginning: string): Promise<string> {
  const text = await readFile(join(root, "docs", page), "utf8");
  const line = text.split("\n").find((each) => each.startsWith(beginning));
  assert.ok(line, beginning);
  return line;
}

/** Runs a line in a shell, in an empty folder. Returns the names of the files that it leaves. */
export async function paste(line: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "inlay-paste-"));
  try {
    const { kubectlProgram, kubeconfigFile } = controlPlane();
    const env = { PATH: `${dirname(kubectlProgram)}:/bin:/usr/bin`, KUBECONFIG: kubeconfigFile, HOME: folder };
    const shell = spawn("/bin/sh", ["-c", line], { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] });
    const [stderr, [code]] = await Promise.all([text(shell.stderr), once(shell, "close")]);
    assert.equal(code, 0, `${line}\n${stderr}`);
    return (await readdir(folder)).filter((name) => !name.startsWith("."));
  } finally {
    await rm(folder, { recursive: true });
  }
}
