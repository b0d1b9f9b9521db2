/** The flags of the subcommands that read a cluster, and the tools that they read it with. Loads only the modules that are needed. */
import type { Command } from "commander";
import type { Tools } from "../explain/tools.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Transport } from "../kube/transport.ts";
import { namespaceName } from "./argument-types.ts";
import { failureText } from "./failure.ts";
import { type OutputFormat, outputOption, print } from "./output.ts";

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
  look: (tools: Tools, namespace: string) => Promise<T>,
  asText: (seen: T, width: number) => string[],
): Promise<void> {
  const [{ Reader }, { Discovery }] = await Promise.all([
    import("../explain/reading.ts"),
    import("../kube/discovery.ts"),
  ]);
  const seen = await connected(flags, (transport, namespace) =>
    look({ reader: new Reader(transport), discovery: new Discovery(transport) }, namespace),
  );
  await print(seen, flags.output, asText);
}

/** Calls `work` with a connection to the cluster and the chosen namespace, and closes every connection. */
export async function connected<T>(
  { kubeconfig, namespace }: Pick<ClusterFlags, "kubeconfig" | "namespace">,
  work: (transport: Transport, namespace: string) => Promise<T>,
): Promise<T> {
  const [{ loadCredentials }, { Transport }] = await Promise.all([
    import("../kube/credentials.ts"),
    import("../kube/transport.ts"),
  ]);
  const credentials = await loadCredentials(kubeconfig);
  const transport = new Transport(credentials);
  try {
    return await work(transport, namespace ?? credentials.namespace ?? "default");
  } catch (error) {
    throw error instanceof ApiError
      ? new Error(failureText(error, credentials.server.origin), { cause: error })
      : error;
  } finally {
    await transport.close();
  }
}
