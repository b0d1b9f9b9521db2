/** `inlay controller`: runs the controller against a cluster until it is told to stop. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import type { ControllerOptions } from "../manager/start-controller.ts";
import { namespaceName, objectName } from "./argument-types.ts";

interface Flags extends Omit<ControllerOptions, "installation" | "onLost"> {
  config?: string;
  watchNamespace?: string;
  leaderElect?: true;
}

/** The kubelet kills a pod after 30 s. */
const STOP_WITHIN_MS = 25_000;
/** Under npx, one Ctrl+C arrives twice: from the terminal and from npx. */
const SAME_SIGNAL_MS = 200;
const POD_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

export function controllerCommand(): Command {
  return new Command("controller")
    .description("run the controller until SIGINT or SIGTERM")
    .option("--kubeconfig <file>", "the cluster; what kubectl would use, or the pod's own account, without it")
    .option("--config <file>", "what this installation lets bindings do; see docs/operations.md")
    .addOption(
      new Option("--log-level <level>", "how much is logged")
        .choices(["debug", "info", "warn", "error", "silent"])
        .default("info"),
    )
    .option("--health-port <port>", "serve /livez and /readyz there", wholeNumber(0, 65535))
    .option(
      "--metrics-port <port>",
      "serve /metrics there over HTTPS, to those whom the API server lets get it",
      wholeNumber(0, 65535),
    )
    .option("--metrics-cert-dir <folder>", "tls.crt and tls.key of that port; a self-signed certificate without it")
    .option("--insecure-metrics", "serve /metrics on the health port, to everyone and in plain text")
    .option("--concurrency <number>", "how many bindings are reconciled at once", wholeNumber(1, 1000), 32)
    .option(
      "--watch-namespace <namespace>",
      "work in that namespace alone, with a Role there; in all of them without it",
      namespaceName,
    )
    .option("--leader-elect", "run beside other replicas: one leads, by the Lease inlay-controller")
    .option(
      "--lease-namespace <namespace>",
      "where that Lease is; the pod's own without it, else the watched one, else inlay-system",
      namespaceName,
    )
    .option(
      "--pod-name <name>",
      "this replica's pod, which it labels when it leads; the host's name without it",
      objectName,
    )
    .action(run);
}

async function run({ leaderElect, leaseNamespace, config, watchNamespace, ...flags }: Flags): Promise<void> {
  if (flags.insecureMetrics && flags.healthPort === undefined)
    throw new Error(
      "--insecure-metrics serves /metrics on the health port: give --health-port too, or --metrics-port instead",
    );
  if (flags.metricsCertDir !== undefined && flags.metricsPort === undefined)
    throw new Error("--metrics-cert-dir is for --metrics-port, which is not given");
  // Not before: the other subcommands need none of it, and loading it takes longer than they do.
  const [{ startController }, { createLog, describeError }, { loadInstallation }, { RolloutsFile }] = await Promise.all(
    [
      import("../manager/start-controller.ts"),
      import("../observability/log.ts"),
      import("./config-file.ts"),
      import("./reload-config-file.ts"),
    ],
  );
  const ownNamespace = podNamespace() ?? watchNamespace ?? "inlay-system";
  const installation = loadInstallation(config, ownNamespace, watchNamespace);
  const log = createLog(flags.logLevel);
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      log.error({ error: describeError(error) }, "ends by a bug of its own");
      process.exit(1);
    });
  }
  const stop = firstSignal();
  const controller = await startController({
    ...flags,
    installation,
    ...(leaderElect && { leaseNamespace: leaseNamespace ?? ownNamespace }),
    onLost: () => process.exit(1),
  });
  const rollouts = config === undefined ? undefined : new RolloutsFile(config, installation, ownNamespace, log);
  rollouts?.start();
  await stop;
  // Not waited for: it fires only if something keeps this process from ending by itself.
  const late = () => {
    log.error({ activeResources: process.getActiveResourcesInfo() }, "could not stop in time");
    process.exit(1);
  };
  setTimeout(late, STOP_WITHIN_MS).unref();
  rollouts?.stop();
  await controller.stop();
}

/** Resolves at the first signal; one more ends the process at once. */
function firstSignal(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | undefined;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        const now = performance.now();
        if (first !== undefined && now - first > SAME_SIGNAL_MS) process.exit(128 + constants.signals[signal]);
        first ??= now;
        resolve();
      });
    }
  });
}

function podNamespace(): string | undefined {
  try {
    return readFileSync(POD_NAMESPACE, "utf8").trim();
  } catch {
    return undefined;
  }
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
  };
}
