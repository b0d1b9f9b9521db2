#!/usr/bin/env node
/** The command line. Loads the file of the chosen subcommand only, parses the arguments, and sets the exit code. */
import { basename } from "node:path";
import { Command, CommanderError } from "commander";
import { COMMANDS } from "./cli/commands.ts";
import { failureText } from "./cli/failure.ts";
import { ownVersion } from "./manager/own-version.ts";

const [major = 0] = process.versions.node.split(".").map(Number);
if (major < 24) {
  console.error(`inlay needs Node 24 or later; this is Node ${process.versions.node}`);
  process.exit(1);
}

const [, program = "", first = "", second = ""] = process.argv;
// A reader that needs no more, such as head, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(process.exitCode);
  throw error;
});
// kubectl calls a plugin's program of this name to complete its words.
const isPlugin = basename(program).startsWith("kubectl_complete-");
if (isPlugin || first === "__complete") {
  const [{ complete, completionText }, { findNames }] = await Promise.all([
    import("./cli/complete.ts"),
    import("./cli/complete-names.ts"),
  ]);
  process.stdout.write(completionText(await complete(process.argv.slice(isPlugin ? 2 : 3), findNames)));
  process.exit();
}
const chosen = first === "help" ? second : first;
/** As a plugin of kubectl, the program is called kubectl-inlay. */
const name = basename(program).startsWith("kubectl-") ? "kubectl inlay" : "inlay";
const inlay = new Command(name)
  .description(
    "Copies values of Secrets into the objects that need them inline, and restarts the workloads that use them",
  )
  .version(ownVersion(), "-V, --version", "print the version")
  .addHelpText(
    "after",
    `\nExample:\n  ${name} explain harbor-s3 -n registry\n\nEach command has its own example: ${name} explain --help`,
  )
  .showHelpAfterError("Run the command with --help to see its options and an example.")
  .exitOverride();
let failureCode = 1;
for (const [command, entry] of Object.entries(COMMANDS)) {
  const isChosen = command === chosen;
  if (isChosen) failureCode = entry.failureCode ?? failureCode;
  const loaded = isChosen ? await entry.load() : new Command(command);
  inlay.addCommand(loaded.description(entry.summary).copyInheritedSettings(inlay));
}

inlay.parseAsync().catch((error: unknown) => {
  // Commander has printed its message.
  const isUsage = error instanceof CommanderError;
  if (!isUsage) console.error(failureText(error));
  process.exit(isUsage && error.exitCode === 0 ? 0 : failureCode);
});
