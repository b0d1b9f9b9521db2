/** The flags of the subcommands that read a cluster, and the tools that they read it with. Loads only the modules that are needed. */
import type { Command } from "commander";
import type { Tools } from "../explain/tools.ts";
import { ApiError } from "../kube/api-error.ts";
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
  { kubeconfig, namespace, output }: ClusterFlags,
  look: (tools: Tools, namespace: string) => Promise<T>,
  asText: (seen: T, width: number) => string[],
): Promise<void> {
  const [{ loadCredentials }, { Transport }, { Reader }, { Discovery }] = await Promise.all([
    import("../kube/credentials.ts"),
    import("../kube/transport.ts"),
    import("../explain/reading.ts"),
    import("../kube/discovery.ts"),
  ]);
  const credentials = await loadCredentials(kubeconfig);
  const transport = new Transport(credentials);
  try {
    const tools = { reader: new Reader(transport), discovery: new Discovery(transport) };
    const seen = await look(tools, namespace ?? credentials.namespace ?? "default").catch((error: unknown) => {
      throw error instanceof ApiError
        ? new Error(failureText(error, credentials.server.origin), { cause: error })
        : error;
    });
    await print(seen, output, asText);
  } finally {
    await transport.close();
  }
}
