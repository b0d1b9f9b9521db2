/** The flag -f of the subcommands that read files, and the report of what is wrong in them. */
import type { Command } from "commander";
import type { Mistake } from "../render/documents.ts";

/** Parses a flag that may be repeated. */
export const listed = (value: string, values: string[] = []): string[] => [...values, value];

/** `more` follows the description of the flag, such as what the files contain. */
export const withFiles = (command: Command, more = "", folder = "folder with its subfolders"): Command =>
  command.requiredOption(
    "-f, --filename <file>",
    `file, ${folder}, or - for standard input${more}; repeatable`,
    listed,
  );

/** Prints one line for each mistake to standard error. The exit code is `code` if there are any. */
export function reportMistakes(mistakes: readonly Mistake[], code = 1): void {
  for (const { file, line, message } of mistakes) process.stderr.write(`${file}:${line}: ${message}\n`);
  if (mistakes.length > 0) process.exitCode = code;
}
