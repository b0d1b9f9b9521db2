/** The controller as a process of its own, with the rights that deploy/manifests gives it: started, stopped, and read. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { ControlPlane } from "../control-plane/control-plane.ts";
import { eventually } from "./eventually.ts";

const root = join(import.meta.dirname, "..", "..");

export class ControllerProcess {
  /** What Node is started with: the source, as it is. The benchmark runs what is built. */
  protected readonly command: readonly string[] = [join(root, "src", "cli", "inlay.ts")];
  protected readonly env: NodeJS.ProcessEnv = process.env;
  readonly #controlPlane: Pick<ControlPlane, "kubeconfigForServiceAccount">;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;
  #starting: Promise<void> | undefined;
  #output = "";

  /** `args` are added to the command line. */
  constructor(controlPlane: Pick<ControlPlane, "kubeconfigForServiceAccount">, ...args: string[]) {
    this.#controlPlane = controlPlane;
    this.#args = args;
  }

  /** Everything that it wrote to stdout and stderr, over all its starts. */
  get output(): string {
    return this.#output;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it and waits until it watches. There is one, however many start it at once. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const kubeconfig = await this.#controlPlane.kubeconfigForServiceAccount("inlay-system", "inlay-controller");
    const args = [...this.command, "controller", "--kubeconfig", kubeconfig, "--log-level", "debug", ...this.#args];
    const child = spawn(process.execPath, args, { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    const from = this.#output.length;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (chunk: string) => {
        this.#output += chunk;
      });
    }
    await eventually(() => {
      if (child.exitCode !== null) throw new Error(`the controller ended: ${this.#output.slice(from)}`);
      if (!this.#output.slice(from).includes("controller started")) throw new Error("the controller did not start");
    });
  }

  /** Asks it to stop, and waits until it has. Returns its exit code. */
  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    this.signal(signal);
    return this.ended();
  }

  /** Sends a signal and does not wait. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Waits until it has ended, by itself or by a signal. Returns its exit code. */
  async ended(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    this.#child = undefined;
    this.#starting = undefined;
    return child.exitCode;
  }
}
