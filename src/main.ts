#!/usr/bin/env node
/** The command line: one file for each subcommand. Parses the arguments and sets the exit code. */
import { Command } from "commander";
import { controllerCommand } from "./cli/controller.ts";
import { explainCommand } from "./cli/explain.ts";
import { failureText } from "./cli/failure.ts";
import { renderCommand } from "./cli/render.ts";
import { traceCommand } from "./cli/trace.ts";
import { ownVersion } from "./manager/own-version.ts";

const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 24) {
  console.error(`inlay needs Node 24 or later; this is Node ${process.versions.node}`);
  process.exit(1);
}

const program = new Command("inlay")
  .description(
    "Copies values of Secrets into the objects that need them inline, and restarts the workloads that use them",
  )
  .version(ownVersion(), "-V, --version", "print the version")
  .addHelpText(
    "after",
    "\nExample:\n  inlay explain harbor-s3 -n registry\n\nEach command has its own example: inlay explain --help",
  )
  .showHelpAfterError("Run the command with --help to see its options and an example.");
for (const command of [controllerCommand(), explainCommand(), traceCommand(), renderCommand()])
  program.addCommand(command.copyInheritedSettings(program));

program.parseAsync().catch((error: unknown) => {
  console.error(failureText(error));
  process.exit(1);
});
