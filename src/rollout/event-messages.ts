/** Composes the events of a rollout. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import { describeObject, type ObjectRef } from "../apimachinery/objects.ts";
import type { EventReason } from "../apimachinery/reasons.ts";
import type { EventMessage } from "../observability/events.ts";
import type { Dependent, RolloutEvent } from "./types.ts";

/** The event about the binding. */
export function bindingEvent(event: RolloutEvent): EventMessage {
  switch (event.what) {
    case "began": {
      const restarts = `${count(event.workloads)} restart${event.workloads === 1 ? "s" : ""}`;
      return rollout("Normal", "RolloutStarted", `${restarts} for ${event.changed.join(", ")}`);
    }
    case "ended": {
      const time = event.seconds < 1 ? "within a second" : `in ${Math.round(event.seconds)} s`;
      return rollout("Normal", "RolledOut", `${count(event.workloads)} rolled out ${time}`);
    }
    case "failed":
      return rollout("Warning", event.reason, `${describe(event.dependent)}: ${event.message}`);
    case "younger": {
      const why = `its present pods are younger than the change of ${event.changed.join(", ")}`;
      return rollout("Normal", "RestartNotNeeded", `${describe(event.dependent)} is not restarted: ${why}`);
    }
    case "stopped":
      return rollout("Warning", "RestartsTooFrequent", event.message);
    case "renewed":
      return rollout(
        "Warning",
        "BaselineReset",
        "the key of the recorded digests no longer exists, so Inlay recorded the present values as the baseline; restart workloads by hand whose values changed in the meantime",
      );
    case "held":
      return rollout("Warning", "PodsNotReplaced", `${describe(event.dependent)}: ${event.message}`);
  }
}

/** A Job was deleted to be recreated, and its copy does not exist. */
export function lostJobEvent({ resource, namespace, name }: ObjectRef, copy: string): EventMessage {
  const [job, of] = [name, copy].map((each) => describeObject(resource.kind, namespace, each));
  return rollout("Warning", "RolloutFailed", `${job} and its copy, ${of}, no longer exist; create ${job} again`);
}

/** The event about the workload. */
export function workloadEvent(
  { metadata: { namespace, name } }: SecretBinding,
  changed: readonly string[],
): EventMessage {
  const note = `restarted by SecretBinding ${namespace}/${name}, as ${changed.join(", ")} changed`;
  return rollout("Normal", "Restarted", note);
}

export function unprobedEvent(unprobed: readonly string[]): EventMessage {
  const note = `its pods count as ready at once: no readiness probe in ${unprobed.join(", ")}; add one, or set spec.rollout.requireReadinessProbe to exclude such workloads`;
  return rollout("Warning", "NoReadinessProbe", note);
}

export function unbudgetedEvent(): EventMessage {
  const note =
    "no PodDisruptionBudget selects its pods, so a drain of nodes during the restart may evict its other pods; add one, or set spec.rollout.requireDisruptionBudget to exclude such workloads";
  return rollout("Warning", "NoPodDisruptionBudget", note);
}

function rollout(type: EventMessage["type"], reason: EventReason, note: string): EventMessage {
  return { type, reason, action: "Rollout", note };
}

const count = (workloads: number) => `${workloads} workload${workloads === 1 ? "" : "s"}`;
const describe = ({ ref }: Dependent) => describeObject(ref.resource.kind, ref.namespace, ref.name);
