/**
 * The process that owns a control plane's programs and its folder. Its parent sends orders over a channel, and it reports their
 * results and the ends of programs. When the channel closes, for example because the parent was killed, it stops the programs,
 * last started first, and removes the folder. It has a session of its own, so that Ctrl-C in the terminal reaches only the
 * parent.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Order, Report } from "./keeper.ts";

interface Running {
  child: ChildProcess;
  exited: Promise<void>;
  stopWithin: number;
  /** The last signal that was sent to it. */
  signal?: NodeJS.Signals;
}

/** By name, in the order of their first start. Undefined while a program does not run. */
const programs = new Map<string, Running | undefined>();
/** Go collects garbage less often: the tests trade memory for time. */
const { GOGC } = process.env;
const folder = await mkdtemp(join(tmpdir(), "inlay-control-plane-"));
let stopping: Promise<void> | undefined;
/** The text of /proc for a thread that has stopped or ended. */
const STOPPED = /^State:\s[TXZ]/m;
const GONE = "State:\tX (dead)";

process.on("message", (order: Order) => {
  follow(order).then(
    (pid) => report({ order: order.id, ...(pid !== undefined && { pid }) }),
    (error: Error) => report({ order: order.id, error: error.message }),
  );
});
process.on("disconnect", () => void stopAll());
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void stopAll());
if (process.connected) report({ folder });
else void stopAll();

function report(news: Report): void {
  // The parent may have ended.
  if (process.connected) process.send?.(news, () => {});
}

async function follow(order: Order): Promise<number | undefined> {
  switch (order.do) {
    case "start":
      return await start(order);
    case "signal":
      await send(order.name, order.signal);
      return undefined;
    case "stop":
      await stopAll();
      return undefined;
  }
}

async function start(order: Order & { do: "start" }): Promise<number> {
  if (stopping) throw new Error("the control plane is being stopped");
  if (programs.get(order.name)) throw new Error(`${order.name} runs already`);
  const log = openSync(order.log, "a");
  const child = spawn(order.file, order.args, {
    cwd: folder,
    // The programs get no variables of the user: etcd, for example, reads each of its flags from the environment too.
    env: { PATH: process.env["PATH"], HOME: folder, TMPDIR: folder, ...(GOGC && { GOGC }) },
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => {
    child.once("exit", (code, signal) => {
      programs.set(order.name, undefined);
      report({ exited: order.name, how: signal === null ? `exit code ${code}` : `${signal}` });
      resolve();
    });
  });
  return await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => {
      programs.set(order.name, { child, exited, stopWithin: order.stopWithin });
      resolve(child.pid as number);
    });
  });
}

/** Sends a signal. After SIGSTOP, returns when the program has stopped, because it continues for a moment. */
async function send(name: string, signal: NodeJS.Signals): Promise<void> {
  const program = programs.get(name);
  if (program === undefined) return;
  program.signal = signal;
  program.child.kill(signal);
  const isToStop = () => program.signal === "SIGSTOP" && programs.get(name) === program && stopping === undefined;
  while (isToStop() && !(await isStopped(program.child.pid as number))) await setImmediate();
}

/** Once one thread has stopped, no other begins. The second check covers threads that began during the first. */
const isStopped = async (pid: number) => (await haveStopped(pid)) && (await haveStopped(pid));

/** Whether all listed threads have stopped. Only Linux lists them. */
async function haveStopped(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const texts = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/status`, "utf8").catch(() => GONE));
  return (await Promise.all(texts)).every((text) => STOPPED.test(text));
}

/** Stops the programs one after the other, because the API server must end before its etcd, and then this process. */
function stopAll(): Promise<void> {
  stopping ??= (async () => {
    for (const program of [...programs.values()].reverse()) {
      if (program === undefined) continue;
      const { child, exited, stopWithin } = program;
      child.kill("SIGTERM");
      child.kill("SIGCONT");
      const deadline = setTimeout(() => child.kill("SIGKILL"), stopWithin);
      await exited;
      clearTimeout(deadline);
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    // The response to the order is sent first.
    void setImmediate().then(() => process.exit(0));
  })();
  return stopping;
}
