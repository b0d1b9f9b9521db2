/** All subcommands. Each is in a file of its own, which is loaded only for this command. */
import type { Command } from "commander";

export interface CommandEntry {
  /** One line for the help of the program. */
  summary: string;
  load: () => Promise<Command>;
  /** The exit code of a failure, if it is not 1. */
  failureCode?: number;
}

export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  controller: {
    summary: "run the controller until SIGINT or SIGTERM",
    load: async () => (await import("./controller.ts")).controllerCommand(),
  },
  explain: {
    summary: "show the state of a SecretBinding, from its sources to its rollout, and what to do",
    load: async () => (await import("./explain.ts")).explainCommand(),
  },
  trace: {
    summary: "show what uses a Secret, and what restarts when it changes",
    load: async () => (await import("./trace.ts")).traceCommand(),
  },
  render: {
    summary: "show the bindings that compositions create, and the fields that bindings write, without a cluster",
    load: async () => (await import("./render.ts")).renderCommand(),
  },
  gitops: {
    summary: "print the settings with which Argo CD or Flux ignore the fields of bindings, without a cluster",
    load: async () => (await import("./gitops.ts")).gitopsCommand(),
  },
};
