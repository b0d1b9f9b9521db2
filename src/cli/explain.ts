/** `inlay explain`: shows the state of a SecretBinding, from its sources to its rollout, or what bindings own in another object. Reads only. */
import { Command } from "commander";
import { bindingOrObject } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";
import { drawing, type GraphFormat, graphOption } from "./graph.ts";

export function explainCommand(): Command {
  return withClusterFlags(new Command("explain"))
    .argument("<binding>", "name of the SecretBinding, or KIND/NAME of an object that bindings write", bindingOrObject)
    .addOption(graphOption())
    .addHelpText("after", "\nExample:\n  inlay explain harbor-s3 -n registry")
    .action(run);
}

type Flags = ClusterFlags & { graph?: GraphFormat };

async function run({ kind, name }: ReturnType<typeof bindingOrObject>, { graph, ...flags }: Flags): Promise<void> {
  if (kind !== undefined) {
    const [{ explainObject }, { objectText }, { Schemas }] = await Promise.all([
      import("../explain/object.ts"),
      import("../explain/object-text.ts"),
      import("../kube/schemas.ts"),
    ]);
    await show(
      flags,
      (tools, namespace) =>
        explainObject({ ...tools, schemas: new Schemas(tools.transport) }, namespace, { kind, name }),
      objectText,
    );
    return;
  }
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
