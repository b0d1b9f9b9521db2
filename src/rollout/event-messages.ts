/** What happens in a rollout comes in; what to tell of it by events goes out. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import { describeObject, type ObjectRef } from "../apimachinery/objects.ts";
import type { EventReason } from "../apimachinery/reasons.ts";
import type { EventMessage } from "../observability/events.ts";
import type { Dependent, RolloutEvent } from "./types.ts";

/** What to tell of the binding. */
export function bindingEvent(event: RolloutEvent): EventMessage | undefined {
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
      return rollout("Warning", "RolloutFailed", `${describe(event.dependent)}: ${event.message}`);
    case "renewed":
      return rollout(
        "Warning",
        "BaselineReset",
        "the key by which changes are seen is not there any more, so the values of now were taken for those that the workloads have; restart by hand what changed meanwhile",
      );
    case "done":
      return event.message === undefined
        ? undefined
        : rollout("Warning", "PodsNotReplaced", `${describe(event.dependent)}: ${event.message}`);
  }
}

/** A Job was deleted to be recreated, and its copy is not there. */
export function lostJobEvent({ resource, namespace, name }: ObjectRef, copy: string): EventMessage {
  const [job, of] = [name, copy].map((each) => describeObject(resource.kind, namespace, each));
  return rollout("Warning", "RolloutFailed", `${job} and its copy, ${of}, are gone; create ${job} again`);
}

/** What to tell of the workload itself. */
export function workloadEvent(
  { metadata: { namespace, name } }: SecretBinding,
  changed: readonly string[],
): EventMessage {
  const note = `restarted by SecretBinding ${namespace}/${name}, as ${changed.join(", ")} changed`;
  return rollout("Normal", "Restarted", note);
}

export function unprobedEvent(unprobed: readonly string[]): EventMessage {
  const note = `restarts before anybody knows that it works: no readiness probe in ${unprobed.join(", ")}; add one, or have it left alone by spec.rollout.requireReadinessProbe`;
  return rollout("Warning", "NoReadinessProbe", note);
}

export function unbudgetedEvent(): EventMessage {
  const note =
    "no PodDisruptionBudget selects its pods, so that nodes which are drained while it restarts may take the others; add one, or have it left alone by spec.rollout.requireDisruptionBudget";
  return rollout("Warning", "NoPodDisruptionBudget", note);
}

function rollout(type: EventMessage["type"], reason: EventReason, note: string): EventMessage {
  return { type, reason, action: "Rollout", note };
}

const count = (workloads: number) => `${workloads} workload${workloads === 1 ? "" : "s"}`;
const describe = ({ ref }: Dependent) => describeObject(ref.resource.kind, ref.namespace, ref.name);
