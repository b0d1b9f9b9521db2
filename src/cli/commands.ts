/** All subcommands. Each is in a file of its own, which is loaded only for this command. */
import type { Command } from "commander";

interface CommandEntry {
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
  validate: {
    summary: "check the objects of Inlay in files, and report each mistake with its file and line",
    load: async () => (await import("./validate.ts")).validateCommand(),
  },
  diff: {
    summary: "show what would change in the cluster if files were applied, by dry runs",
    load: async () => (await import("./diff.ts")).diffCommand(),
    failureCode: 2,
  },
  render: {
    summary: "show the bindings that compositions create, and the fields that bindings write, without a cluster",
    load: async () => (await import("./render.ts")).renderCommand(),
  },
  init: {
    summary: "write a SecretBinding for a live object, and ask for what its flags leave out",
    load: async () => (await import("./init.ts")).initCommand(),
  },
  rbac: {
    summary: "print the least permissions that bindings in files need, as Roles and RoleBindings",
    load: async () => (await import("./rbac.ts")).rbacCommand(),
  },
  migrate: {
    summary: "convert the objects of another tool, such as Kyverno, to bindings, and list what can't be converted",
    load: async () => (await import("./migrate.ts")).migrateCommand(),
  },
  gitops: {
    summary: "print the settings with which Argo CD or Flux ignore the fields of bindings, without a cluster",
    load: async () => (await import("./gitops.ts")).gitopsCommand(),
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
    load: async () => (await import("./suspend.ts")).resumeCommand(),
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
