/**
 * Finds the first thing that keeps a binding from its desired state, with the command that fixes it. The controller's conditions decide; if
 * they are older than the spec, the observations of this command decide. Pure.
 */
import { missingPermissionsCommand } from "../api/binding.ts";
import { MAX_MESSAGE_LENGTH } from "../api/verdict.ts";
import { describeObject } from "../apimachinery/objects.ts";
import { accountNotFound } from "../kube/access-error.ts";
import { serviceAccountIdentity } from "../kube/identity.ts";
import { verbFor } from "../sources/grant-rules.ts";
import { ALL_KEYS, useInWords } from "../sources/uses.ts";
import type { Advice, Explanation, SourceExplanation } from "./explanation.ts";
import { podsCommand } from "./running.ts";

type Facts = Omit<Explanation, "advice">;

/**
 * `controllerNamespace` is undefined if it is not known. `isImitating`: a text of the binding looks like a command of a message, so no
 * command in a message is certain.
 */
export function adviceFor(facts: Facts, controllerNamespace?: string, isImitating = false): Advice {
  const { namespace, name, generation, observedGeneration, suspended, deleting } = facts.binding;
  const isCurrent = observedGeneration !== undefined && observedGeneration === generation;
  const inWay = facts.conditions.filter(({ status }) => status !== "True");
  if (suspended && !deleting) {
    const command = `kubectl patch secretbinding ${name} -n ${namespace} --type merge -p '{"spec":{"suspend":false}}'`;
    return { reason: "Suspended", message: "spec.suspend is true, so nothing is written or released", command };
  }
  const all = ["Ready", "RolledOut"].flatMap((type) => inWay.filter((condition) => condition.type === type));
  // A target that waits for the rollout needs nothing else, so other causes come first.
  const failing = all.find(({ reason }) => reason !== "RolloutPending") ?? all[0];
  if (isCurrent && failing !== undefined) {
    const { reason, message } = failing;
    const [says, command] = grantsFor(facts, message) ?? [];
    return says === undefined || command === undefined
      ? isImitating
        ? { reason, message }
        : withCommand(reason, message)
      : { reason, message: says, command };
  }
  if (isCurrent && !deleting) return { reason: "Synced", message: "nothing, the binding is in sync" };
  const [found] = findings(facts);
  if (found !== undefined) return found;
  const what = deleting
    ? "is being deleted, and the controller has not released its fields"
    : observedGeneration === undefined
      ? "is new, and the controller has not reconciled it"
      : `has generation ${generation}, and the controller has reconciled only generation ${observedGeneration}`;
  return {
    reason: "NotObserved",
    message: `the binding ${what}; check that the controller runs with:`,
    command: podsCommand(controllerNamespace),
  };
}

/**
 * The commands for all missing permissions, which the status has apart from the message, whatever names the message quotes. Undefined if
 * the message is about something else.
 */
function grantsFor({ binding: { namespace, name }, missingPermissions }: Facts, message: string): string[] | undefined {
  const command = missingPermissions?.join("; ");
  if (command === undefined) return undefined;
  const printing = /^(.*); print the (first \d+ )?commands that allow [\w ]+ with: /s.exec(message);
  if (printing !== null && message.endsWith(` with: ${missingPermissionsCommand(namespace, name)}`)) {
    const [, refused, some] = printing;
    return [
      `${refused}; allow ${some === undefined ? "all" : `the ${some}of all`} that this binding lacks with:`,
      command,
    ];
  }
  return message.endsWith(` with: ${command}`) ? [message.slice(0, -command.length - 1), command] : undefined;
}

/** Whether the author of an object wrote what separates a command from the text of a message. */
export const imitates = (spec: object): boolean => /with:\s+(?:kubectl|echo)\s/i.test(JSON.stringify(spec));

/** What separates the command at the end of a message from its text. */
const SEPARATOR = / with: (?=(?:kubectl|echo) )/;

/**
 * Separates the command at the end of a message from its text. Drops a command that is cut. An author chooses names and paths, and messages
 * quote them, so a message with two separators, or one in a quotation, has no command that is certain.
 */
export function withCommand(reason: string, message: string): Advice {
  const [says = "", rest, ...imitations] = message.split(SEPARATOR);
  const isQuoted = (says.replace(/\\./g, "").split('"').length - 1) % 2 === 1;
  const [, command, others] =
    /^(.+?)(?:; (the same for .+?))?(?: \(and \d+ more, see status\.targets\))?$/s.exec(rest ?? "") ?? [];
  // The end of a long message may be truncated, and with it the command.
  const isWhole = others !== undefined || message.length < MAX_MESSAGE_LENGTH;
  if (command === undefined || imitations.length > 0 || isQuoted || !isWhole) return { reason, message };
  return { reason, message: `${says}${others === undefined ? "" : ` (${others})`} with:`, command };
}

/** An optional source needs its VaultConnection too: only Vault knows whether the source exists. */
function connectionFindings(
  state: SourceExplanation["state"],
  { ready }: NonNullable<SourceExplanation["vault"]>,
  what: string,
): Advice[] {
  if (state === "NotFound") return [{ reason: "ConnectionNotFound", message: `there is no ${what}; create it` }];
  if (ready === undefined || ready.status === "True") return [];
  const advice = withCommand(ready.reason, ready.message);
  return [{ ...advice, message: `${what} is not ready: ${advice.message}` }];
}

/** In the order in which the controller checks them. */
function findings({ binding, account, sources, targets }: Facts): Advice[] {
  const missing = account.state === "NotFound" ? [account.name.split("/").at(-1) ?? ""] : [];
  return [
    ...missing.map((name) => {
      const { reason, message } = accountNotFound(serviceAccountIdentity(binding.namespace, name));
      return withCommand(reason, message);
    }),
    ...sources.flatMap((source): Advice[] => {
      const what = describeObject(source.kind, source.namespace, source.name);
      if (source.grants?.state === "NotFound") {
        const message = `no SecretGrant in namespace ${source.namespace} permits this binding to ${verbFor(source)} ${what}`;
        return [{ reason: "NotGranted", message }];
      }
      if (source.vault !== undefined) return connectionFindings(source.state, source.vault, what);
      if (source.optional) return [];
      if (source.state === "NotFound")
        return [{ reason: "SourceNotFound", message: source.message ?? `there is no ${what}; create it` }];
      const lacking = source.uses
        .filter(({ present }) => present === false)
        .map(({ key }) => (key === ALL_KEYS ? "data" : useInWords(key)));
      return lacking.length === 0
        ? []
        : [{ reason: "KeyNotFound", message: `${what} has no ${lacking.join(", ")}; add it, or correct the binding` }];
    }),
    ...targets.flatMap(({ kind, creates, objects, message }) => [
      ...(message === undefined || objects.length > 0 ? [] : [{ reason: "KindNotFound", message }]),
      ...objects
        .filter(({ state }) => state === "NotFound" && !creates)
        .map(({ namespace, name }) => ({
          reason: "TargetNotFound",
          message: `there is no ${describeObject(kind, namespace, name)}; create it`,
        })),
    ]),
  ];
}
