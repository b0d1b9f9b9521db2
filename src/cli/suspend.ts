/** `inlay suspend` and `inlay resume`: stop Inlay from processing an object, or let it continue, by `spec.suspend`. */
import { Command } from "commander";
import type { NamedObject } from "../actions/object.ts";
import { kindAndName } from "./argument-types.ts";
import { type ClusterFlags, show, withClusterFlags } from "./cluster.ts";

export const suspendCommand = (): Command =>
  suspending(
    "suspend",
    true,
    "If git holds the object, set spec.suspend: true there instead: your GitOps tool reverts this change at its next sync.",
  );

export const resumeCommand = (): Command =>
  suspending(
    "resume",
    false,
    "If git holds spec.suspend: true, remove it there instead: your GitOps tool suspends the object again at its next sync.",
  );

/** The subcommand that sets `spec.suspend` to a value. Its help contains a note. */
function suspending(name: string, value: boolean, note: string): Command {
  return withClusterFlags(new Command(name))
    .argument("<object>", "name of a SecretBinding, or secretbinding/NAME or bindingcomposition/NAME", kindAndName)
    .addHelpText("after", `\n${note}\n\nExample:\n  inlay ${name} harbor-s3 -n registry`)
    .action(async (object: NamedObject, flags: ClusterFlags) => {
      const { suspend, suspendedText } = await import("../actions/suspend.ts");
      await show(
        flags,
        (tools, namespace) => suspend(tools, object, namespace, value),
        (suspended) => [suspendedText(object, suspended)],
      );
    });
}
