/** The flags of commands that check bindings by the rules of an installation. */
import type { Command } from "commander";
import { DEFAULT_NAMESPACE } from "../api/installation.ts";
import { namespaceName } from "./argument-types.ts";

/** What `loadInstallation` needs. */
export interface InstallationFlags {
  config?: string;
  controllerNamespace: string;
}

export const withInstallation = (command: Command): Command =>
  command
    .option("--config <file>", "configuration file of the controller, with its rules about targets")
    .option("--controller-namespace <namespace>", "namespace in which Inlay runs", namespaceName, DEFAULT_NAMESPACE);
