/** `inlay completion`: prints the script that completes commands, options and names in a shell. */
import { Argument, Command } from "commander";

const BASH = `# Completion of inlay for bash.
_inlay_complete() {
  local out line directive
  COMPREPLY=()
  out=$("\${COMP_WORDS[0]/#\\~/$HOME}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
  directive=\${out##*:}
  while IFS= read -r line; do
    case $line in
      :*) ;;
      ?*) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done <<< "$out"
  # Without candidates, bash completes names of files, unless the program says that none is meant.
  if [ "$directive" = 4 ]; then compopt +o default 2>/dev/null; fi
}
complete -o default -F _inlay_complete inlay
`;

const ZSH = `#compdef inlay
# Completion of inlay for zsh.
_inlay() {
  local -a out candidates
  local line name
  out=("\${(@f)$("\${words[1]/#\\~/$HOME}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "\${(@)out[1,-2]}"; do
    name=\${line%%$'\\t'*}
    name=\${name//:/\\\\:}
    if [[ $line == *$'\\t'* ]]; then name+=":\${line#*$'\\t'}"; fi
    candidates+=("$name")
  done
  if (( \${#candidates} )); then
    _describe inlay candidates
  elif [[ $out[-1] == :0 ]]; then
    _files
  fi
}
if [[ $funcstack[1] == _inlay ]]; then
  _inlay "$@"
else
  compdef _inlay inlay
fi
`;

const FISH = `# Completion of inlay for fish.
function __inlay_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l out ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    if test (count $out) -eq 1 -a "$out[-1]" = :0
        __fish_complete_path "$current"
    else if test (count $out) -gt 1
        printf '%s\\n' $out[1..-2]
    end
end
complete -c inlay -f -a '(__inlay_complete)'
`;

export const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

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
