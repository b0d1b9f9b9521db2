/** Writes the messages about missing permissions, with the commands for all that a binding lacks. Pure. */
import { missingPermissionsCommand, type SecretBinding } from "../../api/binding.ts";
import { MAX_MESSAGE_LENGTH } from "../../api/verdict.ts";
import { plainWord } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import { AccessDenied } from "../../kube/access-error.ts";
import { shellWord } from "../../kube/grant-commands.ts";
import type { LackingAccess } from "../../targets/outcome.ts";

/** The message of a problem. `before` says what it is about, and `more` that there are other problems. */
export type Says = (before: string, problem: Problem, more: string) => string;

export const plainly: Says = (before, { message }, more) => `${before}${message}${more}`;

/** Says how to print the commands for all permissions that the account of a binding lacks. */
function printing({ metadata }: SecretBinding, { commands, isCut }: LackingAccess, what = "it") {
  const some = isCut ? `first ${commands.length} commands that allow it` : `commands that allow ${what}`;
  return `print the ${some} with: ${missingPermissionsCommand(metadata.namespace, metadata.name)}`;
}

/** For a target. The commands for all targets are in the status once. */
export function targetMessage(binding: SecretBinding, problem: Problem, lacking: LackingAccess | undefined): string {
  const isLacking = problem instanceof AccessDenied && lacking !== undefined && lacking.commands.length > 0;
  return isLacking ? `${problem.refused}; ${printing(binding, lacking)}` : problem.message;
}

/** A missing permission, with the commands for all of them. If they are too long, the message says how to print them. */
export function sayingHow(binding: SecretBinding, lacking: LackingAccess): Says {
  const { commands, words, missingNamespaces, isCut } = lacking;
  return (before, problem, more) => {
    if (!(problem instanceof AccessDenied)) return plainly(before, problem, more);
    const { namespace } = problem.access.ref;
    if (namespace !== undefined && missingNamespaces.includes(namespace))
      return `${before}there is no namespace ${plainWord(namespace)}${more}; create it with: kubectl create namespace ${shellWord(namespace)}`;
    if (commands.length === 0) return plainly(before, problem, more);
    const refused = `${before}${problem.refused}${more}`;
    const what = commands.length === 1 ? "it" : "all that this binding lacks";
    const message = `${refused}; allow ${what} with: ${commands.join("; ")}`;
    // A message of the full length counts as cut.
    if (message.length < MAX_MESSAGE_LENGTH && !isCut) return message;
    for (let shown = words.length; shown > 0; shown--) {
      const others = words.length - shown;
      const all = `${words.slice(0, shown).join("; ")}${others > 0 ? `; and ${others} more` : ""}`;
      const says = `${refused}; this binding lacks: ${all}; ${printing(binding, lacking, "all of it")}`;
      if (says.length < MAX_MESSAGE_LENGTH) return says;
    }
    return `${refused}; ${printing(binding, lacking)}`;
  };
}
