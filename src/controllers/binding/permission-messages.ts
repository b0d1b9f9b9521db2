/** Gives the problems of missing permissions the commands for all that a binding lacks. Pure. */
import { missingPermissionsCommand, type SecretBinding } from "../../api/binding.ts";
import { MAX_MESSAGE_LENGTH } from "../../api/verdict.ts";
import { plainWord } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { AccessDenied } from "../../kube/access-error.ts";
import { shellWord } from "../../kube/grant-commands.ts";
import type { LackingAccess } from "../../targets/outcome.ts";

/** How to print the commands for all permissions that the account of a binding lacks. */
function printing({ metadata }: SecretBinding, { commands, isCut }: LackingAccess, what = "it") {
  const some = isCut ? `first ${commands.length} commands that allow it` : `commands that allow ${what}`;
  return {
    fix: `print the ${some}`,
    command: missingPermissionsCommand(metadata.namespace, metadata.name),
  };
}

/** For a target. The commands for all targets are in the status once. */
export function withPrinting<P extends Problem>(
  problem: P,
  binding: SecretBinding,
  lacking: LackingAccess | undefined,
): P {
  if (!(problem instanceof AccessDenied) || lacking === undefined) return problem;
  if (isWithoutNamespace(problem, lacking)) return createNamespace(problem);
  return lacking.commands.length === 0 ? problem : problem.with(printing(binding, lacking));
}

/** For a condition, which has room for some commands. If they are too long, it says how to print them. */
export function withCommands(problem: Problem, binding: SecretBinding, lacking: LackingAccess | undefined): Problem {
  if (!(problem instanceof AccessDenied) || lacking === undefined) return problem;
  if (isWithoutNamespace(problem, lacking)) return createNamespace(problem);
  const { commands, words, isCut } = lacking;
  if (commands.length === 0) return problem;
  const fix = `allow ${commands.length === 1 ? "it" : "all that this binding lacks"}`;
  const whole = problem.with({ fix, command: commands.join("; "), note: undefined });
  // A message of the full length counts as cut.
  if (whole.message.length < MAX_MESSAGE_LENGTH && !isCut) return whole;
  for (let shown = words.length; shown > 0; shown--) {
    const others = words.length - shown;
    const all = `${words.slice(0, shown).join("; ")}${others > 0 ? `; and ${others} more` : ""}`;
    const says = problem.with({
      what: `${problem.what}; this binding lacks: ${all}`,
      ...printing(binding, lacking, "all of it"),
    });
    if (says.message.length < MAX_MESSAGE_LENGTH) return says;
  }
  return problem.with(printing(binding, lacking));
}

const isWithoutNamespace = ({ access: { ref } }: AccessDenied, { missingNamespaces }: LackingAccess): boolean =>
  ref.namespace !== undefined && missingNamespaces.includes(ref.namespace);

function createNamespace<P extends AccessDenied>(problem: P): P {
  const { namespace = "" } = problem.access.ref;
  const command = `kubectl create namespace ${shellWord(namespace)}`;
  return problem.with({ what: `there is no namespace ${plainWord(namespace)}`, fix: "create it", command });
}
