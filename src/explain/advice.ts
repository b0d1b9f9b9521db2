/**
 * Finds the first thing that keeps a binding from what it says, with the command that fixes it. What the controller says goes
 * first; where it has not looked yet, what was seen here counts. Pure.
 */
import { MAX_MESSAGE_LENGTH } from "../api/verdict.ts";
import { describeObject } from "../apimachinery/objects.ts";
import { accountNotFound } from "../kube/access-error.ts";
import { serviceAccountIdentity } from "../kube/identity.ts";
import { verbFor } from "../sources/grant-rules.ts";
import { ALL_KEYS, useInWords } from "../sources/uses.ts";
import type { Advice, Explanation, SourceExplanation } from "./explanation.ts";

type Facts = Omit<Explanation, "advice">;

export function adviceFor(facts: Facts): Advice {
  const { namespace, name, generation, observedGeneration, suspended, deleting } = facts.binding;
  const isLookedAt = observedGeneration !== undefined && observedGeneration === generation;
  const inWay = facts.conditions.filter(({ status }) => status !== "True");
  if (suspended && !deleting) {
    const command = `kubectl patch secretbinding ${name} -n ${namespace} --type merge -p '{"spec":{"suspend":false}}'`;
    return { reason: "Suspended", message: "spec.suspend is true, so nothing is written or released", command };
  }
  const all = ["Ready", "RolledOut"].flatMap((type) => inWay.filter((condition) => condition.type === type));
  // A target that waits for the rollout needs nothing but the end of the rollout.
  const failing = all.find(({ reason }) => reason !== "RolloutPending") ?? all[0];
  if (isLookedAt && failing !== undefined) return withCommand(failing.reason, failing.message);
  if (isLookedAt && !deleting) return { reason: "Synced", message: "nothing: all is as the binding says" };
  const [found] = findings(facts);
  if (found !== undefined) return found;
  const what = deleting ? "waits for the controller to release it" : "was not looked at by the controller as it is now";
  return {
    reason: "NotObserved",
    message: `the binding ${what}; see that it runs`,
    command: "kubectl get pods -n inlay-system -l app.kubernetes.io/name=inlay",
  };
}

/** Takes the command, with which a message of Inlay's ends, apart from what it says. A command that was cut off is none. */
export function withCommand(reason: string, message: string): Advice {
  const [, says, command, others] =
    /^(.*?) with: ((?:kubectl|echo) .+?)(?:; (the same for .+?))?(?: \(and \d+ more, see status\.targets\))?$/s.exec(
      message,
    ) ?? [];
  // What follows the command was cut off, if anything.
  const isWhole = others !== undefined || message.length < MAX_MESSAGE_LENGTH;
  if (says === undefined || command === undefined || !isWhole) return { reason, message };
  return { reason, message: `${says}${others === undefined ? "" : ` (${others})`} with:`, command };
}

/** A source that may be missing needs its VaultConnection all the same: only Vault knows what is there. */
function connectionFindings(
  state: SourceExplanation["state"],
  { ready }: NonNullable<SourceExplanation["vault"]>,
  what: string,
): Advice[] {
  if (state === "NotFound") return [{ reason: "ConnectionNotFound", message: `there is no ${what}` }];
  if (ready === undefined || ready.status === "True") return [];
  const advice = withCommand(ready.reason, ready.message);
  return [{ ...advice, message: `${what} is not ready: ${advice.message}` }];
}

/** In the order in which the controller comes to them. */
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
        const message = `no SecretGrant in namespace ${source.namespace} lets this binding ${verbFor(source)} ${what}`;
        return [{ reason: "NotGranted", message }];
      }
      if (source.vault !== undefined) return connectionFindings(source.state, source.vault, what);
      if (source.optional) return [];
      if (source.state === "NotFound")
        return [{ reason: "SourceNotFound", message: source.message ?? `there is no ${what}` }];
      const lacking = source.uses
        .filter(({ present }) => present === false)
        .map(({ key }) => (key === ALL_KEYS ? "data" : useInWords(key)));
      return lacking.length === 0 ? [] : [{ reason: "KeyNotFound", message: `${what} has no ${lacking.join(", ")}` }];
    }),
    ...targets.flatMap(({ kind, creates, objects, message }) => [
      ...(message === undefined || objects.length > 0 ? [] : [{ reason: "KindNotFound", message }]),
      ...objects
        .filter(({ state }) => state === "NotFound" && !creates)
        .map(({ namespace, name }) => ({
          reason: "TargetNotFound",
          message: `there is no ${describeObject(kind, namespace, name)}`,
        })),
    ]),
  ];
}
