/** Runs the program with its arguments: loads the file of the chosen subcommand only, and turns failures into a line and an exit code. */
import { basename } from "node:path";
import { Command, CommanderError } from "commander";
import { ownVersion } from "../manager/own-version.ts";
import { COMMANDS } from "./commands.ts";
import { failureText } from "./failure.ts";

/** Returns the code with which the process must exit, or undefined if it ends by itself. */
export async function runProgram(argv: readonly string[]): Promise<number | undefined> {
  const [, program = "", first = "", second = ""] = argv;
  // kubectl calls a plugin's program of this name to complete its words.
  const isCompleter = basename(program).startsWith("kubectl_complete-");
  if (isCompleter || first === "__complete") return completeWords(argv.slice(isCompleter ? 2 : 3));
  const chosen = first === "help" ? second : first;
  const failureCode = Object.hasOwn(COMMANDS, chosen) ? (COMMANDS[chosen]?.failureCode ?? 1) : 1;
  // As a plugin of kubectl, the program is called kubectl-inlay.
  const inlay = await rootCommand(basename(program).startsWith("kubectl-") ? "kubectl inlay" : "inlay", chosen);
  try {
    // For an unknown command, `help` would print the help of all commands, and no message.
    const isUnknown = first === "help" && /^\w/.test(second) && !Object.hasOwn(COMMANDS, second);
    await inlay.parseAsync(isUnknown ? argv.toSpliced(2, 1) : argv);
    return undefined;
  } catch (error) {
    // Commander has printed its message.
    const isUsage = error instanceof CommanderError;
    if (!isUsage) console.error(failureText(error));
    return isUsage && error.exitCode === 0 ? 0 : failureCode;
  }
}

async function rootCommand(name: string, chosen: string): Promise<Command> {
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
  for (const [command, entry] of Object.entries(COMMANDS)) {
    const loaded = command === chosen ? await entry.load() : new Command(command);
    inlay.addCommand(loaded.description(entry.summary).copyInheritedSettings(inlay));
  }
  return inlay;
}

async function completeWords(words: readonly string[]): Promise<number> {
  const [{ complete, completionText }, { findNames }] = await Promise.all([
    import("./complete.ts"),
    import("./complete-names.ts"),
  ]);
  process.stdout.write(completionText(await complete(words, findNames)));
  return 0;
}
