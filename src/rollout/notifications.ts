/** Composes the notifications about restarts. Pure, except for the time. */
import type { SecretBinding } from "../api/binding.ts";
import type { RolloutStatus } from "../api/rollout.ts";
import { apiVersionOf, type ObjectMeta, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import type { Notification } from "../notifications/text.ts";
import { copyName } from "../workloads/job-copy.ts";
import type { RolloutDecision } from "./decide/engine.ts";
import { refusalsIn } from "./decide/intent-status.ts";
import { lostJobEvent, workloadEvent } from "./event-messages.ts";
import type { Dependent } from "./types.ts";

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
