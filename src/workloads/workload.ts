/** A workload as the API server has it comes in; what rollouts have to know of it goes out, and nothing else is kept. No I/O. */
import { type ReloaderAnnotations, STANDARD_VIEW } from "../api/reloader.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { at, listAt, valueAt } from "../apimachinery/fields.ts";
import { isObject } from "../apimachinery/json.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { ARGO_ROLLOUT, groupKindOf, JOB } from "./group-kinds.ts";
import { copied, isPassing } from "./job-copy.ts";
import { type PodReference, podReferences } from "./pod-references.ts";
import { type PodReplacement, replacingOf } from "./pod-replacement.ts";
import { isOnDelete, type Progress, progressOf } from "./progress.ts";
import { restarting, restartText } from "./restart-field.ts";
import { isStamp } from "./rollout-stamp.ts";

/** All that is kept of a workload: there may be thousands. */
export interface Workload {
  /** What its pods read, one for each object. */
  readonly references: readonly PodReference[];
  readonly progress: Progress;
  /** A change of its template changes no pod until someone resumes it. */
  readonly paused: boolean;
  /** Its pods are those of another object, whose template it takes. One of its own beside that is a mistake to its controller. */
  readonly templateElsewhere?: true;
  /** New pods come only when somebody deletes the old ones. */
  readonly onDelete: boolean;
  /** Of such a one, what it takes to have its pods replaced. */
  readonly replacing?: PodReplacement;
  /** A Job that nobody restarts: the next run of its CronJob replaces it, or it is the copy of another. */
  readonly isPassing?: true;
  /** Of a copy, the Job that it stands for. */
  readonly copied?: { readonly name: string; readonly uid: string };
  /** It has more than one replica. */
  readonly isMany?: true;
  /** The names of containers without a readiness probe, of one whose pods are to be ready. */
  readonly unprobed: readonly string[];
  /** The uids of its owners. */
  readonly owners: readonly string[];
  /** What rollouts of bindings wrote into its pod template, or into the field that it restarts on. */
  readonly stamps: readonly string[];
  /** What stands in that field, if there is one. */
  readonly restart?: string;
  /** Those of its pods. */
  readonly labels: Readonly<Record<string, string>>;
  /** What it says to Reloader, if anything; of a copy, what the Job says. */
  readonly reloaderAnnotations?: ReloaderAnnotations;
}

/** Where things stand in a workload. */
export interface WorkloadPaths {
  /** Its pod template, if it has one. */
  readonly template?: string;
  /** The field that it restarts on, where that is no annotation of its pod template. */
  readonly restart?: string;
}

/** The kinds that need no path in a binding: of each, the path of its pod template. */
export const WORKLOAD_KINDS = {
  Deployment: { apiVersion: "apps/v1", template: "spec.template" },
  StatefulSet: { apiVersion: "apps/v1", template: "spec.template" },
  DaemonSet: { apiVersion: "apps/v1", template: "spec.template" },
  CronJob: { apiVersion: "batch/v1", template: "spec.jobTemplate.spec.template" },
  Job: { apiVersion: "batch/v1", template: "spec.template" },
  Rollout: { apiVersion: "argoproj.io/v1alpha1", template: "spec.template" },
} as const satisfies Record<string, { apiVersion: string; template: string }>;

/** One for all that have none of something. */
const NONE: readonly never[] = [];
const NO_TEXTS = {};

/**
 * `template`: the path of the pod template. Where there is none, such as in a Rollout that takes that of a Deployment, there
 * are no references. `restart`: the field that it restarts on, where that is another.
 */
export function workloadOf(
  object: KubeObject,
  template: FieldPath | undefined,
  restart?: FieldPath,
  view = STANDARD_VIEW,
): Workload {
  const pods = template && valueAt(object, template);
  const podSpec = at(pods, "spec");
  const { spec, metadata } = object;
  const groupKind = groupKindOf(object);
  const isAJob = groupKind === JOB;
  const progress = progressOf(object);
  const replacing = replacingOf(object);
  const text = restart && restartText(object, restart);
  const texts = [...Object.values(textsOf(pods, "annotations")), ...(text === undefined ? [] : [text])];
  const original = isAJob ? copied(object) : undefined;
  const annotations = view.annotationsOf(original?.annotations ?? metadata.annotations, textsOf(pods, "annotations"));
  return {
    references: orNone(podReferences(podSpec)),
    progress: (restart && progress.state === "Done" ? restarting(object, restart) : undefined) ?? progress,
    paused: at(spec, "paused") === true,
    ...(pods === undefined && isObject(spec) && groupKind === ARGO_ROLLOUT && { templateElsewhere: true as const }),
    ...(text !== undefined && { restart: text }),
    ...(isObject(pods) && Number(at(spec, "replicas")) > 1 && { isMany: true as const }),
    onDelete: isOnDelete(spec),
    ...(replacing && { replacing }),
    ...(isAJob && isPassing(object) && { isPassing: true as const }),
    ...(original && { copied: { name: original.name, uid: original.uid } }),
    unprobed: orNone(groupKind.startsWith("batch/") ? NONE : unprobedIn(podSpec)),
    owners: orNone((metadata.ownerReferences ?? NONE).map(({ uid }) => uid)),
    stamps: orNone(texts.filter(isStamp)),
    labels: textsOf(pods, "labels"),
    ...(annotations !== undefined && { reloaderAnnotations: annotations }),
  };
}

function unprobedIn(podSpec: unknown): string[] {
  return listAt(podSpec, "containers").flatMap((each) =>
    isObject(each) && each["readinessProbe"] === undefined && typeof each["name"] === "string" ? [each["name"]] : [],
  );
}

function textsOf(pods: unknown, map: "labels" | "annotations"): Readonly<Record<string, string>> {
  const texts = at(pods, "metadata", map);
  if (!isObject(texts)) return NO_TEXTS;
  const entries = Object.entries(texts).filter((each): each is [string, string] => typeof each[1] === "string");
  return Object.fromEntries(entries);
}

const orNone = <T>(all: readonly T[]): readonly T[] => (all.length === 0 ? NONE : all);
