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
  sync: {
    summary: "ask Inlay to reconcile an object now, and to read everything again",
    load: async () => (await import("./sync.ts")).syncCommand(),
  },
  suspend: {
    summary: "stop Inlay from writing and releasing anything for an object",
    load: async () => (await import("./suspend.ts")).suspendCommand(),
  },
  resume: {
    summary: "let Inlay process a suspended object again",
    load: async () => (await import("./resume.ts")).resumeCommand(),
  },
  dev: {
    summary: "run a local control plane with Inlay, in a clone of the repository",
    load: async () => (await import("./dev.ts")).devCommand(),
  },
  completion: {
    summary: "print a script that completes commands and names in bash, zsh or fish",
    load: async () => (await import("./completion.ts")).completionCommand(),
  },
  version: {
    summary: "show the versions of this program and of the Inlay in a cluster",
    load: async () => (await import("./version.ts")).versionCommand(),
  },
};
