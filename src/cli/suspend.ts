/** `inlay suspend`: stops Inlay from writing and releasing anything for an object, by its field `spec.suspend`. */
import { Command } from "commander";
import type { NamedObject } from "../actions/named-object.ts";
import { kindAndName } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";

const NOTE =
  "If git holds the object, set spec.suspend: true there instead: your GitOps tool reverts this change at its next sync.";

export function suspendCommand(): Command {
  return withClusterFlags(new Command("suspend"))
    .argument("<object>", "name of a SecretBinding, or secretbinding/NAME or bindingcomposition/NAME", kindAndName)
    .addHelpText("after", `\n${NOTE}\n\nExample:\n  inlay suspend harbor-s3 -n registry`)
    .action(run);
}

async function run(object: NamedObject, flags: ClusterFlags): Promise<void> {
  const { suspend, suspendedText } = await import("../actions/suspend.ts");
  await show(
    flags,
    (tools, namespace) => suspend(tools, object, namespace, true),
    (suspended) => [suspendedText(object, suspended)],
  );
}
