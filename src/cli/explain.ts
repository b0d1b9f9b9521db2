/** `inlay explain`: tells how a SecretBinding stands, from its sources to its rollout, and what to do. Reads only. */
import { Command } from "commander";
import { objectName } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";

export function explainCommand(): Command {
  return withClusterFlags(new Command("explain"))
    .description("tell how a SecretBinding stands, from its sources to its rollout, and what to do")
    .argument("<binding>", "the SecretBinding's name", objectName)
    .action(run);
}

async function run(name: string, flags: ClusterFlags): Promise<void> {
  const [{ explain }, { explanationText }] = await Promise.all([
    import("../explain/explain.ts"),
    import("../explain/explanation-text.ts"),
  ]);
  await show(
    flags,
    (tools, namespace) => explain(tools, namespace, name),
    (explanation) => explanationText(explanation, Date.now()),
  );
}
