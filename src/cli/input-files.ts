/** The flags of the subcommands that read files and check bindings by the rules of an installation, and the report of what is wrong. */
import { type Command, Option } from "commander";
import { DEFAULT_NAMESPACE } from "../api/installation.ts";
import type { Mistake } from "../render/documents.ts";
import { namespaceName } from "./argument-types.ts";
import type { OutputFormat } from "./output.ts";

export interface FileFlags {
  filename: string[];
  crds?: string[];
  namespace?: string;
  output: OutputFormat;
  cluster?: boolean;
  kubeconfig?: string;
}

/** What `loadInstallation` needs. */
export interface InstallationFlags {
  config?: string;
  controllerNamespace: string;
}

/** Parses a flag that may be repeated. */
export const listed = (value: string, values: string[] = []): string[] => [...values, value];

/** `more` follows the description of the flag, such as what the files contain. */
export const withFiles = (command: Command, more = "", folder = "folder with its subfolders"): Command =>
  command.requiredOption(
    "-f, --filename <file>",
    `file, ${folder}, or - for standard input${more}; repeatable`,
    listed,
  );

export const withInstallation = (command: Command): Command =>
  command
    .option("--config <file>", "configuration file of the controller, with its rules about targets")
    .option("--controller-namespace <namespace>", "namespace in which Inlay runs", namespaceName, DEFAULT_NAMESPACE);

/** `of` says whose CRDs the command uses. */
export const crdsOption = (of: string): Option =>
  new Option("--crds <file>", `file or folder with the CRDs of ${of}; repeatable`).argParser(listed);

/** Reads the files of the flags and the rules of the installation. `flat`: without the subfolders of folders. */
export async function readInput(
  { filename, crds = [], ...flags }: Pick<FileFlags, "filename" | "crds"> & InstallationFlags,
  flat = false,
) {
  const [{ loadInstallation }, { readFiles }] = await Promise.all([
    import("./config-file.ts"),
    import("../render/files.ts"),
  ]);
  const installation = loadInstallation(flags.config, flags.controllerNamespace);
  const [given, ofCrds] = [readFiles(filename, flat), readFiles(crds)];
  return { installation, files: given.files, crds: ofCrds.files, mistakes: [...given.mistakes, ...ofCrds.mistakes] };
}

/** Prints one line for each mistake to standard error. The exit code is `code` if there are any. */
export function reportMistakes(mistakes: readonly Mistake[], code = 1): void {
  for (const { file, line, message } of mistakes) process.stderr.write(`${file}:${line}: ${message}\n`);
  if (mistakes.length > 0) process.exitCode = code;
}
