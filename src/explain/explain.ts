/** Builds the Explanation of a binding: reads all objects that it names, in parallel. */

import type { SecretBinding, StoredBinding } from "../api/binding.ts";
import { composedFrom } from "../api/composed.ts";
import { claimsToBeGenerated } from "../api/reloader.ts";
import { asRecorded } from "../api/status-records.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { CORE_EVENTS, SECRET_BINDINGS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import { describeIdentity, serviceAccountIdentity } from "../kube/identity.ts";
import { adviceFor } from "./advice.ts";
import type { ExplainedEvent, Explanation } from "./explanation.ts";
import { foundOr, type Reading, seenOf, withAdvice } from "./reading.ts";
import { explainRollout } from "./rollout.ts";
import { findController } from "./running.ts";
import { explainSources } from "./sources.ts";
import { explainTargets } from "./targets.ts";
import { readerOfTemplates, type Tools } from "./tools.ts";

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
  if (reading.state === "Found") return reading.it;
  if (reading.state === "Unreadable") throw new Error(withAdvice(reading));
  const message = `there is no SecretBinding ${namespace}/${name}; correct the name or --namespace, or list all with: kubectl get secretbindings -A`;
  throw new Error(message);
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
