/**
 * Starts programs, waits until they are ready, and ensures that they end. They belong to a keeper process, which stops them even
 * if this process is killed.
 */
import { type ChildProcess, fork } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The orders to the keeper process. */
export type Order = { id: number } & (
  | { do: "start"; name: string; file: string; args: string[]; log: string; stopWithin: number }
  | { do: "signal"; name: string; signal: NodeJS.Signals }
  | { do: "stop" }
);

/** The reports of the keeper process: that it runs, the result of an order, or the end of a program. */
export type Report = { folder: string } | Answer | { exited: string; how: string };

interface Answer {
  order: number;
  pid?: number;
  error?: string;
}

export interface Command {
  name: string;
  file: string;
  args: string[];
  /** Called until it returns true. Without it, a program is ready when it runs. */
  isReady?: () => Promise<boolean>;
  readyWithin?: number;
  /** The milliseconds between SIGTERM and SIGKILL. */
  stopWithin?: number;
}

type OrderWithoutId = Order extends infer O ? (O extends Order ? Omit<O, "id"> : never) : never;

const POLLED_EVERY = 25;
const LOG_TAIL = 30;

export class Keeper {
  /** A folder for all files of the programs. It is removed after they have stopped. */
  readonly folder: string;
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly programs = new Map<string, Program>();
  #orders = 0;
  #gone = false;
  #stopped: Promise<void> | undefined;

  private constructor(child: ChildProcess, folder: string) {
    this.#process = child;
    this.folder = folder;
    child.on("message", (report: Report) => this.#hear(report));
    child.on("exit", () => this.#end());
    this.#release();
  }

  static async start(): Promise<Keeper> {
    const child = fork(join(import.meta.dirname, "keeper-process.ts"), [], {
      detached: true,
      execArgv: [],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    const folder = await new Promise<string>((resolve, reject) => {
      child.once("message", (report: Report) => "folder" in report && resolve(report.folder));
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the keeper of the control plane ended with exit code ${code}`)));
    });
    return new Keeper(child, folder);
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  /** Starts a program and waits until it is ready. */
  async run(command: Command): Promise<Program> {
    const program = new Program(this, command);
    this.programs.set(command.name, program);
    await program.start();
    return program;
  }

  /** Stops every program, last started first, and removes the folder. */
  async stop(): Promise<void> {
    this.#stopped ??= (async () => {
      if (this.#gone) return await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
      const exited = new Promise((resolve) => this.#process.once("exit", resolve));
      for (const program of this.programs.values()) program.expectEnd();
      await this.order({ do: "stop" }).catch(() => {});
      await exited;
    })();
    return await this.#stopped;
  }

  order(order: OrderWithoutId): Promise<number | undefined> {
    if (this.#gone) return Promise.reject(new Error("the control plane is stopped"));
    const id = this.#orders++;
    return new Promise((resolve, reject) => {
      this.#hold();
      this.#waiting.set(id, ({ pid, error }) => (error === undefined ? resolve(pid) : reject(new Error(error))));
      this.#process.send({ id, ...order } as Order);
    });
  }

  #hear(report: Report): void {
    if ("order" in report) {
      this.#waiting.get(report.order)?.(report);
      this.#waiting.delete(report.order);
      if (this.#waiting.size === 0 && this.#stopped === undefined) this.#release();
    } else if ("exited" in report) {
      this.programs.get(report.exited)?.end(report.how);
    }
  }

  #end(): void {
    this.#gone = true;
    for (const [order, answer] of this.#waiting) answer({ order, error: "the keeper of the control plane is gone" });
    this.#waiting.clear();
    for (const program of this.programs.values()) {
      // Programs still run only if the keeper was killed.
      if (program.pid !== undefined) killIfThere(program.pid);
      program.end("the end of its keeper");
    }
  }

  /** A running control plane does not keep this process alive. An order under way does. */
  #release(): void {
    this.#process.unref();
    this.#process.channel?.unref();
  }

  #hold(): void {
    this.#process.ref();
    this.#process.channel?.ref();
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The program ended by itself in the meantime.
  }
}

/** One program, which can be killed and started again with the same command line. */
export class Program {
  readonly name: string;
  readonly logFile: string;
  /** Undefined while it does not run. */
  pid: number | undefined;
  readonly #keeper: Keeper;
  readonly #command: Command;
  #endExpected = false;
  #ended: string | undefined;
  #onEnd = () => {};
  #end: Promise<void> = Promise.resolve();

  constructor(keeper: Keeper, command: Command) {
    this.name = command.name;
    this.logFile = join(keeper.folder, `${command.name}.log`);
    this.#keeper = keeper;
    this.#command = command;
  }

  /**
   * Starts the program, or starts it again after a kill, and waits until it is ready. `more` arguments apply to this start only.
   */
  async start(...more: string[]): Promise<void> {
    const { name, file, isReady, readyWithin = 60_000, stopWithin = 5_000 } = this.#command;
    this.#ended = undefined;
    this.#endExpected = true;
    this.#end = new Promise((resolve) => {
      this.#onEnd = resolve;
    });
    const args = [...this.#command.args, ...more];
    const pid = await this.#keeper.order({ do: "start", name, file, args, log: this.logFile, stopWithin });
    if (this.howEnded() === undefined) this.pid = pid;
    const deadline = Date.now() + readyWithin;
    while (isReady !== undefined && !(await isReady())) {
      const ended = this.howEnded();
      if (ended !== undefined) throw new Error(`${name} did not start, it ended with ${ended}${await this.#tail()}`);
      if (Date.now() > deadline) throw new Error(`${name} was not ready within ${readyWithin} ms${await this.#tail()}`);
      await sleep(POLLED_EVERY);
    }
    this.#endExpected = false;
  }

  /** Sends a signal, and waits until the program has ended, or has stopped after SIGSTOP. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (this.pid === undefined) return;
    const ends = signal !== "SIGSTOP" && signal !== "SIGCONT";
    if (ends) this.expectEnd();
    await this.#keeper.order({ do: "signal", name: this.name, signal });
    if (ends) await this.#end;
  }

  /** Stops the program for some time, like a suspended machine. */
  async pauseFor(ms: number): Promise<void> {
    await this.kill("SIGSTOP");
    await sleep(ms).finally(() => this.kill("SIGCONT"));
  }

  /** Undefined while it runs. */
  howEnded(): string | undefined {
    return this.#ended;
  }

  /** From now on, the end of the program is expected. */
  expectEnd(): void {
    this.#endExpected = true;
  }

  /** The keeper calls this at the end of the program. */
  end(how: string): void {
    if (this.#ended !== undefined) return;
    this.pid = undefined;
    this.#ended = how;
    this.#onEnd();
    if (!this.#endExpected) process.stderr.write(`${this.name} ended unexpectedly with ${how}; see ${this.logFile}\n`);
  }

  async #tail(): Promise<string> {
    const text = await readFile(this.logFile, "utf8").catch(() => "");
    return `. The end of its log:\n${text.trimEnd().split("\n").slice(-LOG_TAIL).join("\n")}`;
  }
}
