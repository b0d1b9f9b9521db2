/** `inlay resume`: lets Inlay process a suspended object again, by its field `spec.suspend`. */
import { Command } from "commander";
import type { NamedObject } from "../actions/named-object.ts";
import { kindAndName } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";

const NOTE =
  "If git holds spec.suspend: true, remove it there instead: your GitOps tool suspends the object again at its next sync.";

export function resumeCommand(): Command {
  return withClusterFlags(new Command("resume"))
    .argument("<object>", "name of a SecretBinding, or secretbinding/NAME or bindingcomposition/NAME", kindAndName)
    .addHelpText("after", `\n${NOTE}\n\nExample:\n  inlay resume harbor-s3 -n registry`)
    .action(run);
}

async function run(object: NamedObject, flags: ClusterFlags): Promise<void> {
  const { suspend, suspendedText } = await import("../actions/suspend.ts");
  await show(
    flags,
    (tools, namespace) => suspend(tools, object, namespace, false),
    (suspended) => [suspendedText(object, suspended)],
  );
}
