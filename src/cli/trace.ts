/** `inlay trace`: shows what uses a Secret or ConfigMap, and what restarts when it changes. Reads only. */
import { Command } from "commander";
import { objectName } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";

export function traceCommand(): Command {
  return withClusterFlags(new Command("trace"))
    .argument("<secret>", "name of the Secret", objectName)
    .option("--config-map", "trace a ConfigMap with this name instead of a Secret")
    .addHelpText("after", "\nExample:\n  inlay trace bucket -n registry")
    .action(run);
}

async function run(name: string, { configMap, ...flags }: ClusterFlags & { configMap?: true }): Promise<void> {
  const [{ trace }, { traceText }] = await Promise.all([
    import("../explain/trace.ts"),
    import("../explain/trace-text.ts"),
  ]);
  const kind = configMap ? "ConfigMap" : "Secret";
  await show(flags, (tools, namespace) => trace(tools, { kind, namespace, name }), traceText);
}
