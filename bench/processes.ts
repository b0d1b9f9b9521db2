/** Measures what processes use of the machine, by Linux's own figures; and runs the controller like its users. */
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ControllerProcess } from "../test/controller/controller.ts";

const root = join(import.meta.dirname, "..");

const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");

/** The controller as its image runs it, from dist, which `npm run bench` builds first. */
export class BuiltController extends ControllerProcess {
  protected override readonly command = entrypoint();
  protected override readonly env = imageEnvironment();

  get process(): Process {
    return new Process(this.pid);
  }
}

/** The controller as the README starts it. npx keeps running, as its parent. */
export class NpxController extends BuiltController {
  protected override readonly command = [join(dirname(process.env["npm_execpath"] ?? ""), "npx-cli.js"), "inlay"];
  protected override readonly env = process.env;

  override get process(): Process {
    return new Process(this.pid && lastChildOf(this.pid));
  }

  /** npx does not pass signals on to the shell in which it runs the program. */
  override signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) process.kill(lastChildOf(this.pid), signal);
  }
}

function lastChildOf(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return child === undefined ? pid : lastChildOf(Number(child));
}

function entrypoint(): string[] {
  const [, ...args] = JSON.parse(/^ENTRYPOINT (.*)$/m.exec(dockerfile)?.[1] ?? "[]") as string[];
  return args.map((arg) => arg.replace(/^\/inlay\//, `${root}/`));
}

/** The environment of this process with the settings of the image. */
export function imageEnvironment(): NodeJS.ProcessEnv {
  const settings = [...dockerfile.matchAll(/^ENV (.*)$/gm)].flatMap(([, line = ""]) => line.split(" "));
  return { ...process.env, ...Object.fromEntries(settings.map((each) => each.split("="))) };
}

export class Process {
  readonly #folder: string;

  constructor(pid: number | undefined) {
    if (pid === undefined) throw new Error("it does not run");
    this.#folder = `/proc/${pid}`;
  }

  async cpuSeconds(): Promise<number> {
    const fields = (await readFile(`${this.#folder}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  /** The memory in use now, and its maximum. */
  async memory(): Promise<{ resident: string; most: string }> {
    const status = await readFile(`${this.#folder}/status`, "utf8");
    const of = (key: string) => `${(Number(new RegExp(`${key}:\\s+(\\d+)`).exec(status)?.[1]) / 1024).toFixed(0)} MB`;
    return { resident: of("VmRSS"), most: of("VmHWM") };
  }

  /** Waits until it has used almost no processor for two seconds, and returns since when. */
  async quiet(): Promise<number> {
    let since = performance.now();
    for (let last = await this.cpuSeconds(); performance.now() - since < 2_000; ) {
      await sleep(250);
      const now = await this.cpuSeconds();
      if (now - last > 0.01) since = performance.now();
      last = now;
    }
    return since;
  }
}
