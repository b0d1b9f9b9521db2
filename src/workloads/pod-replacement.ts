/**
 * Decides which pod of a StatefulSet or DaemonSet with updateStrategy OnDelete to delete next: one at a time, and only if all
 * other pods are ready. No I/O.
 */
import { conditionIn, fieldsAt, numberOf } from "../apimachinery/fields.ts";
import { type LabelSelector, selectorText } from "../apimachinery/label-selector.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { groupKindOf } from "./group-kinds.ts";
import { isOnDelete, type Progress, progressOf } from "./progress.ts";

/** The part of such a workload that is cached. */
export interface PodReplacement {
  /** The selector of its pods, as the API server parses it. */
  readonly selector: string;
  /** The wanted number of pods. */
  readonly wanted: number;
  /** The label with the revision of a pod. */
  readonly label: string;
  /** The label's value for the present template; undefined until the controller has observed that template. */
  readonly revision: string | undefined;
  /** How long a pod has to be ready before it counts. */
  readonly readySeconds: number;
  /** The progress that it would have if its controller replaced the pods. */
  readonly progress: Progress;
}

/** The next action. `requeueAfterMs`: until a pod has been ready for long enough. */
type Next = { do: "nothing" } | { do: "wait"; requeueAfterMs?: number } | { do: "evict"; pod: KubeObject };

const GENERATION = "deprecated.daemonset.template.generation";

const MAX_SELECTOR_LENGTH = 8 * 1024;

/** Undefined for any other workload. */
export function replacingOf(object: KubeObject): PodReplacement | undefined {
  const { metadata } = object;
  const [spec, status] = [fieldsAt(object, "spec"), fieldsAt(object, "status")];
  const isStateful = groupKindOf(object) === "apps/StatefulSet";
  if (!(isStateful || groupKindOf(object) === "apps/DaemonSet") || !isOnDelete(spec)) return undefined;
  const isObserved = numberOf(status["observedGeneration"]) >= (metadata.generation ?? 0);
  const revision = isStateful ? status["updateRevision"] : metadata.annotations?.[GENERATION];
  const selector = selectorText(fieldsAt(spec, "selector") as LabelSelector);
  // It is part of a URL.
  if (selector.length > MAX_SELECTOR_LENGTH) return undefined;
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: {} };
  return {
    selector,
    wanted: numberOf(isStateful ? (spec["replicas"] ?? 1) : (status["desiredNumberScheduled"] ?? 0)),
    label: isStateful ? "controller-revision-hash" : "pod-template-generation",
    revision: isObserved && typeof revision === "string" ? revision : undefined,
    readySeconds: numberOf(spec["minReadySeconds"] ?? 0),
    progress: progressOf({ ...object, spec: { ...spec, updateStrategy } }),
  };
}

/**
 * An old pod that is not ready is no loss, and may itself wait for the new value: it is deleted at once. Otherwise one pod is
 * deleted when the wanted number exists and all are ready. The highest ordinal comes first.
 */
export function nextPod(
  { wanted, label, revision, readySeconds }: PodReplacement,
  pods: readonly KubeObject[],
  now: number,
): Next {
  if (revision === undefined) return { do: "wait" };
  const isOld = ({ metadata }: KubeObject) => metadata.labels?.[label] !== revision;
  const isBeingDeleted = ({ metadata }: KubeObject) => metadata.deletionTimestamp !== undefined;
  const old = pods.filter(isOld).toSorted((a, b) => ordinalOf(b) - ordinalOf(a) || byName(a, b));
  const idle = old.find((pod) => !isReady(pod) && !isBeingDeleted(pod));
  if (idle !== undefined) return { do: "evict", pod: idle };
  if (old[0] === undefined) return { do: "nothing" };
  if (pods.length < wanted || pods.some(isBeingDeleted)) return { do: "wait" };
  const readyAt = Math.max(...pods.filter((pod) => !isOld(pod)).map((pod) => readySince(pod) + readySeconds * 1000));
  if (readyAt > now) return { do: "wait", ...(Number.isFinite(readyAt) && { requeueAfterMs: readyAt - now }) };
  return { do: "evict", pod: old[0] };
}

/** Infinity if the pod is not ready. */
function readySince(pod: KubeObject): number {
  const ready = conditionIn(pod["status"], "Ready");
  if (ready?.["status"] !== "True") return Number.POSITIVE_INFINITY;
  return Date.parse(String(ready["lastTransitionTime"])) || 0;
}

const isReady = (pod: KubeObject) => Number.isFinite(readySince(pod));
const ordinalOf = ({ metadata }: KubeObject) => Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? 0);
const byName = (a: KubeObject, b: KubeObject) => (a.metadata.name < b.metadata.name ? -1 : 1);
