/** Composes the events and notifications of a rollout. Pure, except for the time. */
import type { SecretBinding } from "../api/binding.ts";
import type { RolloutStatus } from "../api/rollout.ts";
import { apiVersionOf, describeRef, type ObjectMeta, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { EventReason } from "../apimachinery/reasons.ts";
import type { Notification } from "../notifications/text.ts";
import type { EventMessage } from "../observability/events.ts";
import { copyName } from "../workloads/jobs.ts";
import type { RolloutDecision } from "./decide/engine.ts";
import { refusalsIn } from "./decide/intent-status.ts";
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
      return rollout("Warning", event.reason, `${describeRef(event.dependent.ref)}: ${event.message}`);
    case "younger": {
      const why = `its present pods are younger than the change of ${event.changed.join(", ")}`;
      return rollout("Normal", "RestartNotNeeded", `${describeRef(event.dependent.ref)} is not restarted: ${why}`);
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
      return rollout("Warning", "PodsNotReplaced", `${describeRef(event.dependent.ref)}: ${event.message}`);
  }
}

/** A Job was deleted to be recreated, and its copy does not exist. */
export function lostJobEvent(ref: ObjectRef, copy: string): EventMessage {
  const [job, of] = [describeRef(ref), describeRef({ ...ref, name: copy })];
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

/** The maximum of named keys: all keys of a binding would be too long for a chat. */
const MAX_KEYS = 20;

/** Bindings that share a restart produce the same id, by the version of the workload. */
export function restartNotification(
  binding: SecretBinding,
  { ref }: Dependent,
  { uid, resourceVersion }: ObjectMeta,
  causes: readonly string[],
): Notification {
  const keys = fewOf(causes);
  const { reason, note } = workloadEvent(binding, keys);
  const id = `restarted/${uid}/${resourceVersion}`;
  return { ...about(binding, ref), id, event: "Restarted", reason, message: note, keys };
}

/** For the workloads that failed to roll out, or that Inlay stopped restarting, since the last decision. */
export function failureNotifications(
  binding: SecretBinding,
  { happened, status }: Pick<RolloutDecision, "happened" | "status">,
): Notification[] {
  return happened.flatMap((each) => {
    if (each.what !== "failed" && each.what !== "stopped") return [];
    const { dependent, message } = each;
    const reason = each.what === "stopped" ? "RestartsTooFrequent" : each.reason;
    const { version, workload } = dependent;
    const restart = [version.generation ?? version.resourceVersion, workload.restart, ...workload.stamps];
    const id = [each.what, version.uid, ...restart].join("/");
    return [{ ...failed(binding, dependent.ref, changedFor(dependent, status)), id, reason, message }];
  });
}

/**
 * For the workloads whose restart was refused. A refusal that the status shows was reported before, maybe by another process. An
 * API server that does not answer is no refusal.
 */
export function refusalNotifications(
  binding: SecretBinding,
  unwritten: ReadonlyMap<Dependent, Problem | "stale">,
  { stamps, status }: RolloutDecision,
  stored: RolloutStatus | undefined,
): Notification[] {
  if (unwritten.size === 0) return [];
  const isReported = refusalsIn(stored);
  const planned = new Map(stamps.map(({ dependent, stamp }) => [dependent, stamp]));
  return [...unwritten].flatMap(([dependent, problem]) => {
    if (!(problem instanceof Problem) || problem.reason === "Unavailable") return [];
    const { reason, brief: message } = problem;
    const { uid } = dependent.version;
    const stamp = planned.get(dependent);
    if (isReported(uid, stamp, message)) return [];
    const id = ["refused", uid, stamp, reason].join("/");
    return [{ ...failed(binding, dependent.ref, changedFor(dependent, status)), id, reason, message }];
  });
}

/** For a Job that was deleted to be recreated, if its copy does not exist. */
export function lostJobNotification(binding: SecretBinding, job: ObjectRef, uid: string): Notification {
  const { reason, note } = lostJobEvent(job, copyName(uid));
  return { ...failed(binding, job, []), id: `lost/${uid}`, reason, message: note };
}

const failed = (binding: SecretBinding, ref: ObjectRef, keys: readonly string[]) =>
  ({ ...about(binding, ref), event: "RestartFailed", keys: fewOf(keys) }) as const;

function about({ metadata }: SecretBinding, { resource, namespace = "", name }: ObjectRef) {
  return {
    time: new Date().toISOString(),
    workload: { apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name },
    binding: { namespace: metadata.namespace ?? "", name: metadata.name },
  };
}

function changedFor({ uses }: Dependent, { pending }: RolloutStatus): string[] {
  return [...uses].filter((key) => pending?.digests?.[key] !== undefined).sort();
}

function fewOf(keys: readonly string[]): readonly string[] {
  const more = keys.length - MAX_KEYS;
  return more > 0 ? [...keys.slice(0, MAX_KEYS), `${more} more`] : keys;
}
