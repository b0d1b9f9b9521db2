/** `inlay controller`: runs the controller against a cluster until it is told to stop. */
import { Command, InvalidArgumentError, Option } from "commander";
import { startController } from "../main.ts";
import type { LogLevel } from "../run/log.ts";

interface Flags {
  kubeconfig?: string;
  logLevel: LogLevel;
  healthPort?: number;
  concurrency: number;
}

export function controllerCommand(): Command {
  return new Command("controller")
    .description("run the controller until SIGINT or SIGTERM")
    .option("--kubeconfig <file>", "the cluster; what kubectl would use, or the pod's own account, without it")
    .addOption(
      new Option("--log-level <level>", "how much is logged")
        .choices(["debug", "info", "warn", "error", "silent"])
        .default("info"),
    )
    .option("--health-port <port>", "serve /livez and /readyz there", wholeNumber(0, 65535))
    .option("--concurrency <number>", "how many bindings are reconciled at once", wholeNumber(1, 1000), 16)
    .action(async (flags: Flags) => {
      const stop = new Promise<void>((resolve) => {
        for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
      });
      const controller = await startController(flags);
      await stop;
      await controller.stop();
    });
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
  };
}
