/** Mistakes on the command line, and clusters and files that are not as the command expects. */

export interface Command {
  mistake: string;
  /** KUBECONFIG, SHOP, PORT and FOLDER are replaced. */
  args: readonly string[];
  /** What the command has to say. */
  says: RegExp;
  /** The command retries and does not end. */
  isRetried?: true;
}

const K = ["--kubeconfig", "KUBECONFIG"];

export const COMMANDS: readonly Command[] = [
  { mistake: "a misspelled subcommand", args: ["explan", "web"], says: /explan.*Did you mean explain/s },
  {
    mistake: "a misspelled flag",
    args: ["explain", "web", "--namespase", "x"],
    says: /--namespase.*Did you mean --namespace/s,
  },
  { mistake: "a missing argument", args: ["explain"], says: /binding/ },
  {
    mistake: "a binding with a typo",
    args: ["explain", "nothing", "-n", "SHOP", ...K],
    says: /SecretBinding SHOP\/nothing/,
  },
  { mistake: "a namespace that does not exist", args: ["explain", "web", "-n", "nowhere", ...K], says: /nowhere/ },
  {
    mistake: "a kubeconfig that does not exist",
    args: ["explain", "web", "--kubeconfig", "FOLDER/none"],
    says: /FOLDER\/none.*there is no such file/,
  },
  {
    mistake: "a kubeconfig that is no kubeconfig",
    args: ["explain", "web", "--kubeconfig", "FOLDER/broken.yaml"],
    says: /FOLDER\/broken\.yaml/,
  },
  {
    mistake: "a cluster that is away",
    args: ["explain", "web", "--kubeconfig", "FOLDER/away"],
    says: /127\.0\.0\.1:1 can't be reached.*kubeconfig/,
  },
  {
    mistake: "a controller for a cluster that is away",
    args: ["controller", "--kubeconfig", "FOLDER/away"],
    says: /can't reach the API server.*kubeconfig/,
    isRetried: true,
  },
  {
    mistake: "a port that another process uses",
    args: ["controller", ...K, "--health-port", "PORT"],
    says: /port PORT.*in use.*--health-port/s,
  },
  {
    mistake: "a configuration that does not exist",
    args: ["controller", ...K, "--config", "FOLDER/none.yaml"],
    says: /FOLDER\/none\.yaml.*there is no such file/,
  },
  {
    mistake: "a configuration with an unknown field",
    args: ["controller", ...K, "--config", "FOLDER/config.yaml"],
    says: /FOLDER\/config\.yaml.*reloadr.*reloader/s,
  },
  {
    mistake: "a file to render that does not exist",
    args: ["render", "-f", "FOLDER/none.yaml"],
    says: /FOLDER\/none\.yaml.*no such file/,
  },
  {
    mistake: "a file to render that is no YAML",
    args: ["render", "-f", "FOLDER/broken.yaml"],
    says: /FOLDER\/broken\.yaml:\d+/,
  },
  {
    mistake: "a patch of an unknown type",
    args: ["render", "-f", "FOLDER/composition.yaml"],
    says: /FOLDER\/composition\.yaml:\d+.*patches\[0\]\.type.*FromCompositeFieldPath/,
  },
];
