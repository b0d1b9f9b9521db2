/** The flags of a subcommand that looks at a cluster come in, what it looks with goes out. Only what it needs is loaded. */
import { type Command, Option } from "commander";
import type { Tools } from "../explain/tools.ts";
import { namespaceName } from "./argument-types.ts";

export interface ClusterFlags {
  kubeconfig?: string;
  namespace?: string;
  output?: "json";
}

export const withClusterFlags = (command: Command): Command =>
  command
    .option("--kubeconfig <file>", "the cluster, and as whom to look; what kubectl would use without it")
    .option("-n, --namespace <namespace>", "where it is; the kubeconfig's own without it", namespaceName)
    .addOption(new Option("-o, --output <format>", "for programs instead of people").choices(["json"]));

/** Looks, ends every connection, and prints what was seen: as one document of JSON, or as lines for people. */
export async function show<T>(
  { kubeconfig, namespace, output }: ClusterFlags,
  look: (tools: Tools, namespace: string) => Promise<T>,
  asText: (seen: T) => string[],
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
    const seen = await look(tools, namespace ?? credentials.namespace ?? "default");
    process.stdout.write(`${output === "json" ? JSON.stringify(seen, undefined, 2) : asText(seen).join("\n")}\n`);
  } finally {
    await transport.close();
  }
}
