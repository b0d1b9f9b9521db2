/** The flags of the subcommands that read a cluster, and the tools that they read it with. Loads only the modules that are needed. */
import type { Command } from "commander";
import type { Tools } from "../explain/tools.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import type { Transport } from "../kube/transport.ts";
import { ownVersion } from "../manager/own-version.ts";
import { namespaceOption } from "./argument-types.ts";
import { failureText } from "./failure.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

interface ClusterTools extends Tools {
  /** Sends requests as the user. */
  readonly client: Client;
  readonly transport: Transport;
  /** The address of the API server. */
  readonly origin: string;
}

export interface ClusterFlags {
  kubeconfig?: string;
  namespace?: string;
  output: OutputFormat;
}

export const KUBECONFIG_FLAG = [
  "--kubeconfig <file>",
  "path to a kubeconfig file, with the cluster and your user (default: as kubectl)",
] as const;

export const withClusterFlags = (command: Command): Command =>
  command
    .option(...KUBECONFIG_FLAG)
    .addOption(namespaceOption("the object (default: the kubeconfig's)"))
    .addOption(outputOption());

/** Calls `look`, closes every connection, and prints the result. */
export async function show<T>(
  flags: ClusterFlags,
  look: (tools: ClusterTools, namespace: string) => Promise<T>,
  asText: (seen: T, width: number) => string[],
): Promise<T> {
  const seen = await withTools(flags, look);
  await print(seen, flags.output, asText);
  return seen;
}

/**
 * Calls `use` with the chosen namespace or that of the kubeconfig, and closes every connection. Warns if the Inlay in the cluster is older
 * than this program.
 */
export async function withTools<T>(
  { kubeconfig, namespace }: { kubeconfig?: string | undefined; namespace?: string | undefined },
  use: (tools: ClusterTools, namespace: string) => Promise<T>,
): Promise<T> {
  const [{ loadCredentials }, { Transport }, { Reader }, { Discovery }, { Client }, { ownKindsProblem }] =
    await Promise.all([
      import("../kube/credentials.ts"),
      import("../kube/transport.ts"),
      import("../explain/reading.ts"),
      import("../kube/discovery.ts"),
      import("../kube/client.ts"),
      import("../explain/own-kinds.ts"),
    ]);
  const credentials = await loadCredentials(kubeconfig);
  const transport = new Transport(credentials);
  try {
    const discovery = new Discovery(transport);
    const { origin } = credentials.server;
    const tools = { reader: new Reader(transport), discovery, client: new Client(transport), transport, origin };
    const [used, problem] = await Promise.all([
      use(tools, namespace ?? credentials.namespace ?? "default").then(
        (result) => ({ result }),
        (error: unknown) => ({ error }),
      ),
      ownKindsProblem(transport, discovery, ownVersion()),
    ]);
    // Without Inlay's kinds, the reason is always the same.
    if ("error" in used && problem?.isAbsent) throw new Error(problem.message, { cause: used.error });
    if (problem !== undefined) console.error(`warning: ${problem.message}`);
    if ("error" in used) throw known(used.error, origin);
    return used.result;
  } finally {
    await transport.close();
  }
}

const known = (error: unknown, server: string): unknown =>
  error instanceof ApiError ? new Error(failureText(error, server), { cause: error }) : error;
