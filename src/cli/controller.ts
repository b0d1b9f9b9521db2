/** `inlay controller`: runs the controller against a cluster until a signal stops it. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_NAMESPACE } from "../api/installation.ts";
import type { ControllerOptions } from "../manager/start-controller.ts";
import { namespaceName, objectName } from "./argument-types.ts";

/** Without this flag of Node, SIGUSR1 opens a debugger, which can read all memory. */
const NO_DEBUGGER = "--disable-sigusr1";
const HEAP = ["--max-semi-space-size=2", "--heap-growing-percent=10"];
/** Settings of glibc's malloc. */
const MALLOC = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072" };

type Running = Pick<NodeJS.Process, "argv" | "env" | "execArgv" | "execPath"> & {
  execve?: NodeJS.Process["execve"] | undefined;
};

/**
 * Only the start of a process can set these, and users start the controller in many ways: see docs/performance.md.
 * Does not return if it starts the program again. If a user has set one of the flags for the heap, it adds none of the others.
 */
export function startWithSmallHeap({ argv, env, execArgv, execPath, execve }: Running): void {
  const given = `${execArgv.join(" ")} ${env["NODE_OPTIONS"] ?? ""}`.replaceAll("_", "-");
  const isGiven = (flag: string) => given.includes(flag.split("=")[0] as string);
  const missing = [NO_DEBUGGER, ...(HEAP.some(isGiven) ? [] : HEAP)].filter((flag) => !isGiven(flag));
  // Windows has no execve.
  if (missing.length === 0 || execve === undefined) return;
  execve(execPath, [execPath, ...missing, ...execArgv, ...argv.slice(1)], { ...MALLOC, ...env });
}

interface Flags extends Omit<ControllerOptions, "installation" | "onLost" | "leaseNamespace"> {
  config?: string;
  watchNamespace?: string;
  leaseNamespace?: string;
}

/** The kubelet kills a pod 30 s after SIGTERM. */
const STOP_WITHIN_MS = 25_000;
/** Under npx, one Ctrl+C arrives twice: from the terminal and from npx. */
const SAME_SIGNAL_MS = 200;
const POD_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

export function controllerCommand(): Command {
  const port = wholeNumber(0, 65535);
  return new Command("controller")
    .option("--kubeconfig <file>", "path to a kubeconfig file (default: as kubectl, or the pod's service account)")
    .option("--config <file>", "path to the configuration file; see docs/reference/configuration.md")
    .addOption(
      new Option("--log-level <level>", "least severe level that is logged")
        .choices(["debug", "info", "warn", "error", "silent"])
        .default("info"),
    )
    .addOption(
      new Option(
        "--log-format <format>",
        "text for people, json for programs (default: text on a terminal, else json)",
      ).choices(["text", "json"]),
    )
    .option("--health-port <port>", "serve /livez and /readyz on this port", port)
    .option("--metrics-port <port>", "serve /metrics over HTTPS on this port, to users who may get /metrics", port)
    .option(
      "--metrics-cert-dir <folder>",
      "folder with tls.crt and tls.key for the metrics port (default: a self-signed certificate)",
    )
    .option(
      "--debug-port <port>",
      "serve /debug, the state without values, on this port of 127.0.0.1 and ::1 (default: not served)",
      port,
    )
    .option("--insecure-metrics", "serve /metrics on the health port, without encryption and to everyone")
    .option(
      "--concurrency <number>",
      "number of bindings that are reconciled at the same time",
      wholeNumber(1, 1000),
      32,
    )
    .option(
      "--watch-namespace <namespace>",
      "watch only this namespace, which needs only a Role there (default: all namespaces)",
      namespaceName,
    )
    .option("--leader-elect", "elect a leader among the replicas, by the Lease inlay-controller")
    .option(
      "--lease-namespace <namespace>",
      "namespace of the Lease (default: the pod's, else the watched one, else inlay-system)",
      namespaceName,
    )
    .option(
      "--pod-name <name>",
      "pod of this replica, which gets a label while it leads (default: the host name)",
      objectName,
    )
    .option("--dry-run", "write nothing, and log what would be written; beside a running controller, too")
    .addHelpText("after", "\nExample:\n  inlay controller --kubeconfig ~/.kube/config --log-level debug")
    .action(run);
}

async function run({ leaderElect = false, leaseNamespace, config, watchNamespace, ...flags }: Flags): Promise<void> {
  startWithSmallHeap(process);
  if (flags.insecureMetrics && flags.healthPort === undefined)
    throw new Error("--insecure-metrics needs --health-port; add --health-port, or use --metrics-port instead");
  if (flags.dryRun && leaderElect) throw new Error("--dry-run writes nothing, so it can't lead; remove --leader-elect");
  if (flags.metricsCertDir !== undefined && flags.metricsPort === undefined)
    throw new Error("--metrics-cert-dir needs --metrics-port; add --metrics-port, or remove --metrics-cert-dir");
  const { healthPort, metricsPort, debugPort } = flags;
  for (const [one, other, port, same] of [
    ["--health-port", "--metrics-port", healthPort, metricsPort],
    ["--health-port", "--debug-port", healthPort, debugPort],
    ["--metrics-port", "--debug-port", metricsPort, debugPort],
  ] as const)
    if (port !== undefined && port > 0 && port === same)
      throw new Error(`${one} and ${other} are both ${port}; set two different ports`);
  // Loaded only here: the other subcommands don't need these modules, which take longer to load than those commands run.
  const [{ startController }, { createLog, describeError }, { loadInstallation }, { RolloutsFile }] = await Promise.all(
    [
      import("../manager/start-controller.ts"),
      import("../observability/log.ts"),
      import("./config-file.ts"),
      import("./reload-config-file.ts"),
    ],
  );
  const ownNamespace = podNamespace() ?? watchNamespace ?? DEFAULT_NAMESPACE;
  const installation = loadInstallation(config, ownNamespace, watchNamespace);
  const log = createLog(flags.logLevel, flags.logFormat);
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      log.error({ error: describeError(error) }, "unexpected error; exiting");
      process.exit(1);
    });
  }
  const stop = firstSignal();
  const controller = await startController({
    ...flags,
    installation,
    leaderElect,
    leaseNamespace: leaseNamespace ?? ownNamespace,
    onLost: () => process.exit(1),
  });
  const rollouts = config === undefined ? undefined : new RolloutsFile(config, installation, ownNamespace, log);
  rollouts?.start();
  await stop;
  // Does not keep the process alive: it fires only if something else does.
  const late = () => {
    log.error({ activeResources: process.getActiveResourcesInfo() }, "did not stop in time; exiting");
    process.exit(1);
  };
  setTimeout(late, STOP_WITHIN_MS).unref();
  rollouts?.stop();
  await controller.stop();
}

/** Resolves at the first signal. A second signal ends the process at once. */
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
    throw new InvalidArgumentError(`Set it to a whole number from ${least} to ${most}.`);
  };
}
