/** Runs `npm start` as a new user does, and checks what it prints, what keeps running, and what Ctrl-C stops. */
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
const COMPLETE_WITHIN_MS = 120_000;

export class StartCommand {
  /** Everything that the command printed, on stdout and stderr. */
  output = "";
  readonly #process: ChildProcess;
  #folder = "";

  /** Runs `npm start` with these arguments, and waits until it has printed everything. */
  static async run(...args: string[]): Promise<StartCommand> {
    const command = new StartCommand(args);
    try {
      await command.#complete();
    } catch (error) {
      command.interrupt();
      throw error;
    }
    return command;
  }

  private constructor(args: string[]) {
    const all = args.length === 0 ? ["start"] : ["start", "--", ...args];
    this.#process = spawn("npm", all, { cwd: root, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        this.output += chunk;
      });
    }
  }

  /** The folder of its control plane. */
  get folder(): string {
    return this.#folder;
  }

  /** The value that the output gives to an environment variable or alias. */
  variable(name: string): string {
    return new RegExp(`${name}=(.+)`).exec(this.output)?.[1] ?? "";
  }

  /** The first printed command that matches. */
  command(pattern: RegExp): string {
    return this.output.match(pattern)?.[0] ?? "";
  }

  /** Runs commands in another shell, with the printed variables and alias. */
  async shell(commands: string): Promise<string> {
    const exports = this.output.match(/^ {2}export .*$/gm) ?? [];
    const kubectl = this.variable("alias kubectl");
    const alias = kubectl === "" ? [] : [`kubectl() { ${kubectl} "$@"; }`];
    return (await run("sh", ["-ec", [...exports, ...alias, commands].join("\n")])).stdout;
  }

  get log(): Promise<string> {
    return readFile(join(this.folder, "inlay.log"), "utf8");
  }

  /** Sends Ctrl-C, and checks that no process and no file remains. At least `programs` processes ran before. */
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

  async #complete(): Promise<void> {
    await eventually(() => {
      assert.equal(this.#process.exitCode, null, this.output);
      assert.match(this.output, /The controller's log/);
    }, COMPLETE_WITHIN_MS);
    this.#folder = dirname(dirname(this.variable("KUBECONFIG")));
  }
}

/** The processes whose command line names one of the folders. */
async function processesIn(folders: string[]): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return pids.filter((_, i) => folders.some((folder) => lines[i]?.includes(folder)));
}
