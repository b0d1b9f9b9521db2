/** The flags of the subcommands that read a cluster, and the tools that they read it with. Loads only the modules that are needed. */
import type { Command } from "commander";
import type { Tools } from "../explain/tools.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Transport } from "../kube/transport.ts";
import { namespaceName } from "./argument-types.ts";
import { failureText } from "./failure.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

/** With the transport, for what the reader can't read. */
export interface ClusterTools extends Tools {
  readonly transport: Transport;
}

export interface ClusterFlags {
  kubeconfig?: string;
  namespace?: string;
  output: OutputFormat;
}

export const withClusterFlags = (command: Command): Command =>
  command
    .option("--kubeconfig <file>", "path to a kubeconfig file, with the cluster and your user (default: as kubectl)")
    .option("-n, --namespace <namespace>", "namespace of the object (default: the kubeconfig's)", namespaceName)
    .addOption(outputOption());

/** Calls `look`, closes every connection, and prints the result. */
export async function show<T>(
  flags: ClusterFlags,
  look: (tools: ClusterTools, namespace: string) => Promise<T>,
  asText: (seen: T, width: number) => string[],
): Promise<void> {
  await print(await withTools(flags, look), flags.output, asText);
}

/** Calls `use` with the chosen namespace or that of the kubeconfig, and closes every connection. */
export async function withTools<T>(
  { kubeconfig, namespace }: { kubeconfig?: string | undefined; namespace?: string | undefined },
  use: (tools: ClusterTools, namespace: string) => Promise<T>,
): Promise<T> {
  const [{ loadCredentials }, { Transport }, { Reader }, { Discovery }] = await Promise.all([
    import("../kube/credentials.ts"),
    import("../kube/transport.ts"),
    import("../explain/reading.ts"),
    import("../kube/discovery.ts"),
  ]);
  const credentials = await loadCredentials(kubeconfig);
  const transport = new Transport(credentials);
  try {
    const tools = { reader: new Reader(transport), discovery: new Discovery(transport), transport };
    return await use(tools, namespace ?? credentials.namespace ?? "default");
  } catch (error) {
    throw error instanceof ApiError
      ? new Error(failureText(error, credentials.server.origin), { cause: error })
      : error;
  } finally {
    await transport.close();
  }
}
