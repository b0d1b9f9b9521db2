/** `inlay trace`: shows what uses a Secret or ConfigMap, and what restarts when it changes. Reads only. */
import { Command } from "commander";
import { objectName } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";
import { drawing, type GraphFormat, graphOption } from "./graph.ts";

interface TraceFlags extends ClusterFlags {
  configMap?: true;
  graph?: GraphFormat;
}

export function traceCommand(): Command {
  return withClusterFlags(new Command("trace"))
    .argument("<secret>", "name of the Secret", objectName)
    .option("--config-map", "trace a ConfigMap with this name instead of a Secret")
    .addOption(graphOption())
    .addHelpText("after", "\nExample:\n  inlay trace bucket -n registry")
    .action(run);
}

async function run(name: string, { configMap, graph, ...flags }: TraceFlags): Promise<void> {
  const kind = configMap ? "ConfigMap" : "Secret";
  if (graph !== undefined) {
    const [draw, { traceAsGraph }] = await Promise.all([drawing(graph), import("../explain/graph/read.ts")]);
    await show(flags, (tools, namespace) => traceAsGraph(tools, { kind, namespace, name }), draw);
    return;
  }
  const [{ trace }, { traceText }] = await Promise.all([
    import("../explain/trace.ts"),
    import("../explain/trace-text.ts"),
  ]);
  await show(flags, (tools, namespace) => trace(tools, { kind, namespace, name }), traceText);
}
