/**
 * Decides whether the pods of a workload have the present template, as `kubectl rollout status` does. No I/O. Messages never
 * repeat free text that a controller wrote.
 */

import { at, conditionIn, fieldsAt, listAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import type { JsonObject, KubeObject } from "../apimachinery/objects.ts";
import { ARGO_ROLLOUT, groupKindOf, JOB } from "./group-kinds.ts";

export interface Progress {
  readonly state: "Done" | "Rolling" | "Failed";
  /** For users, such as `2 of 3 replicas are updated`. */
  readonly message: string;
  /** It is not known which pods have the present template, because they are replaced when they are deleted. */
  readonly isUncounted?: true;
  /** The pods that are left keep the former template until a user acts. */
  readonly isHeld?: true;
  /**
   * If its controller has observed an earlier generation than the present one: that generation, and the progress if nothing but the
   * status has changed since.
   */
  readonly behind?: { readonly observed: number; readonly otherwise: Progress };
}

/** The fields of a workload that are read. Their values may have any type. */
interface Parts {
  name: string;
  generation: number;
  spec: JsonObject;
  status: JsonObject;
}

/** A shared object: most workloads are done most of the time. */
const DONE: Progress = { state: "Done", message: "rolled out" };
const NOT_OBSERVED = rolling("its controller has not observed the change yet");

const judges: Readonly<Record<string, (workload: Parts) => Progress>> = {
  "apps/Deployment": ofDeployment,
  "apps/StatefulSet": ofStatefulSet,
  "apps/DaemonSet": ofDaemonSet,
  [ARGO_ROLLOUT]: ofArgoRollout,
  [JOB]: ofJob,
};

export function progressOf(object: KubeObject): Progress {
  const { name, generation = 0 } = object.metadata;
  const judge = judges[groupKindOf(object)] ?? ofOther;
  return judge({ name, generation, spec: fieldsAt(object, "spec"), status: fieldsAt(object, "status") });
}

/** Whether new pods are created only after the old ones are deleted. */
export const isOnDelete = (spec: unknown): boolean => at(spec, "updateStrategy", "type") === "OnDelete";

function ofDeployment({ generation, spec, status }: Parts): Progress {
  if (generation > number(status["observedGeneration"])) return NOT_OBSERVED;
  if (conditionIn(status, "Progressing")?.["reason"] === "ProgressDeadlineExceeded")
    return failed("it made no progress within its spec.progressDeadlineSeconds");
  const wanted = number(spec["replicas"], 1);
  const updated = number(status["updatedReplicas"]);
  const old = number(status["replicas"]) - updated;
  const available = number(status["availableReplicas"]);
  if (updated < wanted) return rolling(`${updated} of ${wanted} replicas are updated`);
  if (old > 0) return rolling(`${old} old ${old === 1 ? "replica has" : "replicas have"} not ended yet`);
  if (available < updated) return rolling(`${available} of ${updated} updated replicas are available`);
  return DONE;
}

function ofStatefulSet({ generation, spec, status }: Parts): Progress {
  const observed = number(status["observedGeneration"]);
  if (observed === 0 || generation > observed) return NOT_OBSERVED;
  const wanted = number(spec["replicas"], 1);
  const ready = number(status["readyReplicas"]);
  const updated = number(status["updatedReplicas"]);
  const surplus = number(status["replicas"]) - wanted;
  if (isOnDelete(spec) && updated < wanted) return whenDeleted(updated, wanted);
  if (ready < wanted) return rolling(`${ready} of ${wanted} pods are ready`);
  if (surplus > 0) return rolling(`${surplus} ${surplus === 1 ? "pod has" : "pods have"} not ended yet`);
  if (number(spec["minReadySeconds"]) > 0 && number(status["availableReplicas"]) < wanted)
    return rolling(`${number(status["availableReplicas"])} of ${wanted} pods are available`);
  if (isOnDelete(spec)) return DONE;
  const update = at(spec, "updateStrategy", "rollingUpdate");
  // The API server sets a default, so this is rare. Then only the revisions show the progress.
  if (!isObject(update))
    return status["updateRevision"] === status["currentRevision"]
      ? DONE
      : rolling(`${updated} of ${wanted} pods are updated`);
  const partition = number(update["partition"]);
  const due = Math.max(wanted - partition, 0);
  const others = partition > 0 ? ", the others are held back by its partition" : "";
  if (updated < due) return rolling(`${updated} of ${due} pods are updated${others}`);
  return updated < wanted ? held(`${updated} of ${wanted} pods are updated${others}`) : DONE;
}

function ofDaemonSet({ generation, spec, status }: Parts): Progress {
  if (generation > number(status["observedGeneration"])) return NOT_OBSERVED;
  const wanted = number(status["desiredNumberScheduled"]);
  const updated = number(status["updatedNumberScheduled"]);
  const available = number(status["numberAvailable"]);
  if (isOnDelete(spec) && updated < wanted) return whenDeleted(updated, wanted);
  if (updated < wanted) return rolling(`${updated} of ${wanted} pods are updated`);
  if (available < wanted) return rolling(`${available} of ${wanted} updated pods are available`);
  return DONE;
}

/** Argo's controller judges by itself, and reports the generation that it judged as text. Before 0.10 it reported a hash. */
function ofArgoRollout({ name, generation, spec, status }: Parts): Progress {
  const observed = status["observedGeneration"];
  const isUnpausing = status["controllerPause"] === true && listAt(status, "pauseConditions").length === 0;
  if (observed === undefined || isBehind(observed, generation) || isUnpausing) return NOT_OBSERVED;
  switch (status["phase"]) {
    case "Healthy":
      return DONE;
    case "Degraded":
      return failed("its controller reports it as Degraded");
    case "Paused":
      return rolling(
        spec["paused"] === true
          ? "it is paused by spec.paused"
          : `it is paused; continue it with: kubectl argo rollouts promote ${name}`,
      );
    default: {
      const [updated, wanted] = [number(status["updatedReplicas"]), number(spec["replicas"], 1)];
      return rolling(`${updated} of ${wanted} replicas are updated`);
    }
  }
}

function ofJob({ spec, status }: Parts): Progress {
  if (conditionIn(status, "Complete")?.["status"] === "True") return { state: "Done", message: "complete" };
  if (conditionIn(status, "Failed")?.["status"] === "True") return failed("the Job failed");
  const wanted = number(spec["completions"], 1);
  return rolling(`${number(status["succeeded"])} of ${wanted} pods have succeeded`);
}

/**
 * A kind without a pod status, such as CronJob, is done when its controller has observed the change. A custom kind is done when
 * its condition says so, if it has one.
 */
function ofOther({ generation, spec, status }: Parts): Progress {
  const own = conditionIn(status, "Ready") ?? conditionIn(status, "Available");
  const observed = [status["observedGeneration"], own?.["observedGeneration"]].filter((each) =>
    isBehind(each, generation),
  );
  const otherwise = observedOther(spec, own);
  if (observed.length === 0) return otherwise;
  return { ...NOT_OBSERVED, behind: { observed: Math.min(...observed.map(Number)), otherwise } };
}

function observedOther(spec: JsonObject, own: JsonObject | undefined): Progress {
  if (own !== undefined && own["status"] !== "True") return rolling(`its condition ${own["type"]} is not True yet`);
  return isOnDelete(spec) ? WHEN_DELETED : DONE;
}

/** Of a custom kind, whose pods are not counted in a way that is known. */
const WHEN_DELETED: Progress = {
  state: "Done",
  message: "its pods are replaced when they are deleted (updateStrategy OnDelete)",
  isUncounted: true,
};

const whenDeleted = (updated: number, wanted: number): Progress =>
  held(
    `${updated} of ${wanted} pods are updated, the others are replaced when they are deleted (updateStrategy OnDelete)`,
  );

const held = (message: string): Progress => ({ state: "Rolling", message, isHeld: true });

function rolling(message: string): Progress {
  return { state: "Rolling", message };
}

const failed = (message: string): Progress => ({ state: "Failed", message });

/** Whether the generation that a controller reports, as a number or text, is older. */
const isBehind = (observed: unknown, generation: number): boolean =>
  (typeof observed === "number" || typeof observed === "string") && Number(observed) < generation;

/** The API server omits a 0, so a missing number is 0 or the default. */
const number = (value: unknown, otherwise = 0): number => (typeof value === "number" ? value : otherwise);
