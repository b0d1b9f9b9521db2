/** Builds the Explanation of a binding: reads all objects that it names, in parallel. */
import {
  type Condition,
  describeTarget,
  missingPermissionsCommand,
  type SecretBinding,
  type StoredBinding,
} from "../api/binding.ts";
import { composedFrom } from "../api/composed.ts";
import { claimsToBeGenerated } from "../api/reloader.ts";
import { asRecorded } from "../api/status-records.ts";
import { describeObject, type KubeObject } from "../apimachinery/objects.ts";
import { type Advice, adviceOf, reasonOf } from "../apimachinery/problem.ts";
import { CORE_EVENTS, SECRET_BINDINGS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { accountNotFound } from "../kube/access-error.ts";
import { describeIdentity, serviceAccountIdentity } from "../kube/identity.ts";
import { verbFor } from "../sources/grant-rules.ts";
import { ALL_KEYS, useInWords } from "../sources/uses.ts";
import type { ExplainedEvent, Explanation, SourceExplanation } from "./explanation.ts";
import { foundOr, foundOrThrow, type Reading, seenOf } from "./reading.ts";
import { explainRollout } from "./rollout.ts";
import { findController, podsCommand } from "./running.ts";
import { explainSources } from "./sources.ts";
import { explainTargets } from "./targets.ts";
import { readerOfTemplates, type Tools } from "./tools.ts";

type Facts = Omit<Explanation, "advice">;

/**
 * The first thing that keeps a binding from its desired state. If the conditions are older than the spec, what this command read decides.
 * `controllerNamespace` is undefined if it is not known.
 */
export function adviceFor(facts: Facts, controllerNamespace?: string): Advice {
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
    // If the rollout has the problem of a target, the list has it once.
    return adviceOn(facts, failing);
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
 * The problem of a condition, from the list in the status. A missing permission gets the commands for all of them: those of all denied
 * requests, such as to create a namespace, and those that the status has apart from the list.
 */
function adviceOn({ binding, problems, missingPermissions }: Facts, { reason, message }: Condition): Advice {
  const found = problems?.find((each) => each.reason === reason);
  if (found === undefined) return { reason, message };
  const { target, path, fix, command } = found;
  const places = [target && describeTarget(target), path].filter((place) => place !== undefined);
  const parts = { at: places, what: found.message, fix, command };
  const denied = problems?.filter((each) => each.reason === "Forbidden").map((each) => each.command) ?? [];
  const commands = new Set([...denied, missingPermissions?.join("; ")].filter((each) => each !== undefined));
  commands.delete(missingPermissionsCommand(binding.namespace, binding.name));
  const all = [...commands].join("; ");
  return reason !== "Forbidden" || all === "" || all === command
    ? adviceOf(reason, parts)
    : adviceOf(reason, { ...parts, fix: "allow what the controller found missing", command: all });
}

/** An optional source needs its connection too: only the store knows whether the source exists. */
function connectionFindings(
  state: SourceExplanation["state"],
  { ready }: NonNullable<SourceExplanation["store"]>,
  what: string,
): Advice[] {
  if (state === "NotFound") return [{ reason: "ConnectionNotFound", message: `there is no ${what}; create it` }];
  if (ready === undefined || ready.status === "True") return [];
  return [{ reason: ready.reason, message: `${what} is not ready: ${ready.message}` }];
}

/** In the order in which the controller checks them. */
function findings({ binding, account, sources, targets }: Facts): Advice[] {
  const missing = account.state === "NotFound" ? [account.name.split("/").at(-1) ?? ""] : [];
  return [
    ...missing.map((name) => reasonOf(accountNotFound(serviceAccountIdentity(binding.namespace, name)))),
    ...sources.flatMap((source): Advice[] => {
      const what = describeObject(source.kind, source.namespace, source.name);
      if (source.grants?.state === "NotFound") {
        const message = `no SecretGrant in namespace ${source.namespace} permits this binding to ${verbFor(source)} ${what}`;
        return [{ reason: "NotGranted", message }];
      }
      if (source.store !== undefined) return connectionFindings(source.state, source.store, what);
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

const MAX_EVENTS = 5;
/** Only the configuration knows the name of that namespace. */
const OF_INSTALLATION = {
  state: "Unreadable" as const,
  message: "an account of Inlay's own namespace, used for workloads with Reloader annotations",
};

/** Throws Error if there is no such binding, or the user may not read it. */
export async function explain(tools: Tools, namespace: string, name: string): Promise<Explanation> {
  const binding = await bindingOf(tools, namespace, name);
  const { metadata, spec, status } = binding;
  // The default of a binding without a status is -1.
  const { observedGeneration = -1 } = status ?? {};
  const readTemplate = await readerOfTemplates([binding]);
  const account = { resource: SERVICE_ACCOUNTS, namespace, name: spec.serviceAccountName };
  const isGenerated = claimsToBeGenerated(binding);
  const [accountSeen, sources, targets, events] = await Promise.all([
    isGenerated ? OF_INSTALLATION : tools.reader.get(account, () => undefined),
    explainSources(tools, binding, readTemplate),
    explainTargets(tools, binding, readTemplate),
    lastEvents(tools, binding),
  ]);
  const accountName = describeIdentity(serviceAccountIdentity(namespace, account.name));
  const madeBy = composedFrom(binding);
  const seen = {
    binding: {
      namespace,
      name,
      ...(metadata.generation !== undefined && { generation: metadata.generation }),
      ...(observedGeneration >= 0 && { observedGeneration }),
      suspended: spec.suspend ?? false,
      deleting: metadata.deletionTimestamp !== undefined,
      ...(madeBy && { madeBy: { composition: madeBy.composition, claim: madeBy.claim } }),
    },
    account: { name: isGenerated ? `ServiceAccount ${account.name}` : accountName, ...seenOf(accountSeen) },
    sources,
    targets,
    ...(status?.notes && { notes: status.notes }),
    ...(spec.rollout && { rollout: explainRollout(binding) }),
    conditions: status?.conditions ?? [],
    ...(status?.problems && { problems: status.problems }),
    ...(status?.missingPermissions !== undefined && { missingPermissions: status.missingPermissions.split("\n") }),
    events: foundOr(events, []),
    ...(events.state === "Unreadable" && { eventsUnreadable: events.message }),
  };
  const controller = await findController(tools.reader, namespace, Date.now());
  return { ...seen, advice: controller.advice ?? adviceFor(seen, controller.namespace) };
}

async function bindingOf({ reader }: Tools, namespace: string, name: string): Promise<SecretBinding> {
  const ref = { resource: SECRET_BINDINGS, namespace, name };
  const reading = await reader.get(ref, (object) => asRecorded(object as unknown as StoredBinding), "whole");
  return foundOrThrow(reading, ref);
}

async function lastEvents({ reader }: Tools, { metadata }: SecretBinding): Promise<Reading<ExplainedEvent[]>> {
  const fields = `involvedObject.kind=${SECRET_BINDINGS.kind},involvedObject.uid=${metadata.uid}`;
  const scope = { resource: CORE_EVENTS, namespace: metadata.namespace as string, fields, form: "whole" as const };
  const events = await reader.list(scope, eventOf);
  if (events.state !== "Found") return events;
  return { state: "Found", it: events.it.sort((a, b) => (a.time < b.time ? -1 : 1)).slice(-MAX_EVENTS) };
}

interface StoredEvent {
  type?: string;
  reason?: string;
  message?: string;
  eventTime?: string | null;
  lastTimestamp?: string | null;
  series?: { lastObservedTime?: string };
}

function eventOf(object: KubeObject): ExplainedEvent {
  const { type = "", reason = "", message = "", eventTime, lastTimestamp, series } = object as unknown as StoredEvent;
  const time = series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? object.metadata.creationTimestamp ?? "";
  return { time, type, reason, message };
}
