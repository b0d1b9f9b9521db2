/** `inlay explain`: shows the state of a SecretBinding, from its sources to its rollout, and what to do. Reads only. */
import { Command } from "commander";
import { objectName } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";
import { drawing, type GraphFormat, graphOption } from "./graph.ts";

export function explainCommand(): Command {
  return withClusterFlags(new Command("explain"))
    .argument("<binding>", "name of the SecretBinding", objectName)
    .addOption(graphOption())
    .addHelpText("after", "\nExample:\n  inlay explain harbor-s3 -n registry")
    .action(run);
}

async function run(name: string, { graph, ...flags }: ClusterFlags & { graph?: GraphFormat }): Promise<void> {
  if (graph !== undefined) {
    const [draw, { explainAsGraph }] = await Promise.all([drawing(graph), import("../explain/graph/read.ts")]);
    await show(flags, (tools, namespace) => explainAsGraph(tools, namespace, name), draw);
    return;
  }
  const [{ explain }, { explanationText }] = await Promise.all([
    import("../explain/explain.ts"),
    import("../explain/explanation-text.ts"),
  ]);
  await show(
    flags,
    (tools, namespace) => explain(tools, namespace, name),
    (explanation, width) => explanationText(explanation, Date.now(), width),
  );
}
