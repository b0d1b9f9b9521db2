/** `inlay trace`: tells who consumes a Secret or ConfigMap, and what restarts when it changes. Reads only. */
import { Command } from "commander";
import { objectName } from "./argument-types.ts";
import { type ClusterFlags, print, withCluster, withClusterFlags } from "./cluster.ts";

export function traceCommand(): Command {
  return withClusterFlags(new Command("trace"))
    .description("tell who consumes a Secret, and what restarts when it changes")
    .argument("<secret>", "the Secret's name", objectName)
    .option("--config-map", "it is a ConfigMap")
    .action(run);
}

async function run(name: string, { configMap, ...flags }: ClusterFlags & { configMap?: true }): Promise<void> {
  const [{ trace }, { traceText }, { speaksOf }] = await Promise.all([
    import("../explain/trace-result.ts"),
    import("../explain/trace-text.ts"),
    import("../sources/grant-rules.ts"),
  ]);
  const kind = configMap ? "ConfigMap" : "Secret";
  const told = await withCluster(flags, (tools, namespace) => trace({ ...tools, speaksOf }, { kind, namespace, name }));
  print(flags, told, traceText);
}
