/** Starts, stops and observes the controller as a separate process, with the permissions of deploy/manifests. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { freePorts } from "../control-plane/ports.ts";
import { eventually } from "./eventually.ts";

/** The time that a process may take to start on a busy machine. */
const STARTED_WITHIN_MS = 60_000;

const root = join(import.meta.dirname, "..", "..");

/** Every controller that was started and not forgotten. All are killed when this process exits. */
const known = new Set<ControllerProcess>();
process.once("exit", () => {
  for (const each of known) each.signal("SIGKILL");
});

export class ControllerProcess {
  /** The length of each controller's output at this moment. */
  static marks(): Map<ControllerProcess, number> {
    return new Map([...known].map((each) => [each, each.output.length]));
  }

  /** The output of each controller since then. */
  static since(marks: ReadonlyMap<ControllerProcess, number>): string[] {
    return [...known].map((each) => each.output.slice(marks.get(each) ?? 0));
  }

  /** Waits until each running controller is idle. */
  static async allIdle(): Promise<void> {
    await Promise.all([...known].filter(({ isRunning }) => isRunning).map((each) => each.idle()));
  }

  /** Forgets the controllers that have stopped, with their output. */
  static forgetEnded(): void {
    for (const each of known) if (!each.isRunning) known.delete(each);
  }

  /** The arguments of Node: the source as it is. The benchmark runs the built program. */
  protected readonly command: readonly string[] = [join(root, "src", "main.ts")];
  protected readonly env: NodeJS.ProcessEnv = process.env;
  readonly #controlPlane: Pick<ControlPlane, "kubeconfigForServiceAccount">;
  readonly #args: readonly string[];
  #healthPort = 0;
  #child: ChildProcess | undefined;
  #starting: Promise<void> | undefined;
  #output = "";

  /** `args` are added to the command line. */
  constructor(controlPlane: Pick<ControlPlane, "kubeconfigForServiceAccount">, ...args: string[]) {
    this.#controlPlane = controlPlane;
    this.#args = args;
  }

  /** Its output to stdout and stderr, over all its starts. */
  get output(): string {
    return this.#output;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether its process runs, or is paused. */
  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts it, and waits until it watches. Concurrent calls start one process. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const kubeconfig = await this.#controlPlane.kubeconfigForServiceAccount("inlay-system", "inlay-controller");
    [this.#healthPort = 0] = await freePorts(1);
    const served = ["--health-port", `${this.#healthPort}`, "--insecure-metrics"];
    const flags = ["--kubeconfig", kubeconfig, "--log-level", "debug", ...served];
    const args = [...this.command, "controller", ...flags, ...this.#args];
    const child = spawn(process.execPath, args, { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    known.add(this);
    const from = this.#output.length;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        this.#output += chunk;
      });
    }
    const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
    await eventually(() => {
      if (!hasEnded() && !this.#output.slice(from).includes("controller started"))
        throw new Error("the controller did not start");
    }, STARTED_WITHIN_MS);
    if (hasEnded()) throw new Error(`the controller ended: ${this.#output.slice(from)}`);
  }

  /** Where its health server is. */
  get url(): string {
    return `http://127.0.0.1:${this.#healthPort}`;
  }

  /** Fetches a page of its health server: /livez, /readyz or /metrics. */
  async page(path: string): Promise<string> {
    return (await fetch(`${this.url}${path}`)).text();
  }

  /** The sum of a metric over all series whose labels contain `label`. */
  async metric(name: string, label = ""): Promise<number> {
    return sumIn(await this.page("/metrics"), name, label);
  }

  /**
   * Waits until it has processed all that it has observed: its watches are open, and no binding waits or is being reconciled. It
   * may not have observed recent changes yet; `TestNamespace.barrier` waits for these too.
   */
  idle(withinMs?: number): Promise<void> {
    return eventually(async () => {
      // Reads the metrics again at one moment, because the end of a reconcile may have opened a watch.
      const now = await this.page("/metrics");
      assert.match(now, /^workqueue_depth/m);
      assert.equal(sumIn(now, "inlay_watch_streams", 'state="pending"'), 0, "watches are being opened");
      assert.equal(sumIn(now, "workqueue_depth"), 0, "bindings wait for their turn");
      assert.equal(sumIn(now, "controller_runtime_active_workers"), 0, "bindings are being reconciled");
    }, withinMs);
  }

  /** Sends SIGTERM by default, and waits for the exit. Returns its exit code. */
  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    this.signal(signal);
    return this.ended();
  }

  /** Sends a signal without waiting. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Waits for its exit. Returns its exit code. */
  async ended(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    if (this.isRunning) await once(child, "close");
    this.#child = undefined;
    this.#starting = undefined;
    return child.exitCode;
  }
}

/** The sum of a metric on a page over all series whose labels contain `label`. */
export function sumIn(page: string, name: string, label = ""): number {
  const series = page.split("\n").filter((line) => /^\w+/.exec(line)?.[0] === name && line.includes(label));
  return series.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
