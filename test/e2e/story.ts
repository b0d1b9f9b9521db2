/** A story of `npm start`, as a new user runs it: what it printed, what stays up, and what Ctrl-C leaves. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "../controller/eventually.ts";

const root = join(import.meta.dirname, "..", "..");
const run = promisify(execFile);
const TOLD_WITHIN_MS = 120_000;

export class Story {
  /** All that it printed. */
  told = "";
  readonly #process: ChildProcess;
  #folder = "";

  /** Runs `npm start` with these arguments, and waits until it has told everything. */
  static async tell(...args: string[]): Promise<Story> {
    const story = new Story(args);
    try {
      await story.#toldAll();
    } catch (error) {
      story.interrupt();
      throw error;
    }
    return story;
  }

  private constructor(args: string[]) {
    const all = args.length === 0 ? ["start"] : ["start", "--", ...args];
    this.#process = spawn("npm", all, { cwd: root, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        this.told += chunk;
      });
    }
  }

  /** The folder of its control plane. */
  get folder(): string {
    return this.#folder;
  }

  /** What an environment variable, or alias, is to be set to. */
  variable(name: string): string {
    return new RegExp(`${name}=(.+)`).exec(this.told)?.[1] ?? "";
  }

  /** The first command that it prints for another terminal that matches. */
  command(pattern: RegExp): string {
    return this.told.match(pattern)?.[0] ?? "";
  }

  /** Runs commands in another terminal, where what the story says is set. */
  async shell(commands: string): Promise<string> {
    const exports = this.told.match(/^ {2}export .*$/gm) ?? [];
    const kubectl = this.variable("alias kubectl");
    const alias = kubectl === "" ? [] : [`kubectl() { ${kubectl} "$@"; }`];
    return (await run("sh", ["-ec", [...exports, ...alias, commands].join("\n")])).stdout;
  }

  get log(): Promise<string> {
    return readFile(join(this.folder, "inlay.log"), "utf8");
  }

  /** Presses Ctrl-C, and checks that it leaves no process and no file. `programs` is how many ran at least. */
  async endsWithoutATrace(programs: number, ...folders: string[]): Promise<void> {
    const all = [this.folder, ...folders];
    const pids = await processesIn(all);
    assert.ok(pids.length >= programs, `only ${pids.length} processes ran`);
    const ended = once(this.#process, "close");
    this.interrupt();
    await ended;
    assert.deepEqual(
      all.filter((each) => existsSync(each)),
      [],
    );
    assert.deepEqual(await processesIn(all), []);
  }

  interrupt(): void {
    const { exitCode, signalCode, pid } = this.#process;
    if (exitCode === null && signalCode === null && pid !== undefined) process.kill(-pid, "SIGINT");
  }

  async #toldAll(): Promise<void> {
    await eventually(() => {
      assert.equal(this.#process.exitCode, null, this.told);
      assert.match(this.told, /The controller's log/);
    }, TOLD_WITHIN_MS);
    this.#folder = dirname(dirname(this.variable("KUBECONFIG")));
  }
}

/** The processes whose command line names one of the folders. */
async function processesIn(folders: string[]): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return pids.filter((_, i) => folders.some((folder) => lines[i]?.includes(folder)));
}
