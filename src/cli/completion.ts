/** `inlay completion`: prints the script that completes commands, options and names in a shell. */
import { Argument, Command } from "commander";
import { SCRIPTS } from "./completion-scripts.ts";

const INSTALLATION = `
To enable it in your present shell, and in new ones, add the same line to its startup file:
  bash  source <(inlay completion bash)          # ~/.bashrc
  zsh   source <(inlay completion zsh)           # ~/.zshrc, after compinit
  fish  inlay completion fish | source           # ~/.config/fish/config.fish

For kubectl inlay, enable the completion of kubectl. kubectl calls kubectl_complete-inlay, which must be in your PATH.

Example:
  source <(inlay completion bash)`;

export function completionCommand(): Command {
  return new Command("completion")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", INSTALLATION)
    .action((shell: string) => {
      process.stdout.write(SCRIPTS[shell] ?? "");
    });
}
