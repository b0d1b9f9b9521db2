/** Extracts from a workload what rollouts need, and keeps nothing else. No I/O. */
import { createHash } from "node:crypto";
import { type ReloaderAnnotations, STANDARD_VIEW } from "../api/reloader.ts";
import type { FieldPath } from "../apimachinery/field-path.ts";
import { at, listAt, numberOf, valueAt } from "../apimachinery/fields.ts";
import { isObject, stringifyJson } from "../apimachinery/json.ts";
import { jsonLength } from "../apimachinery/json-length.ts";
import { type KubeObject, MAX_NAME_LENGTH } from "../apimachinery/objects.ts";
import { ARGO_ROLLOUT, groupKindOf, JOB } from "./group-kinds.ts";
import { copied, isPassing } from "./jobs.ts";
import { isBeside, type PodReference, podReferences } from "./pod-references.ts";
import { type PodReplacement, replacingOf } from "./pod-replacement.ts";
import { isOnDelete, type Progress, progressOf } from "./progress.ts";
import { isMark, isStamp } from "./rollout-stamp.ts";

/** The text that a field needs if it does not accept every text. */
type RestartText = "time" | "true";

/** Strimzi restarts the pods for such an annotation with the value true, and removes it afterwards. */
const STRIMZI = "strimzi.io/";

/** Undefined if every change of the field restarts the workload, as in a pod template. */
export const givenText = ({ stampAt, isRestartField }: { stampAt: FieldPath; isRestartField: boolean }) =>
  isRestartField ? textFor(stampAt) : undefined;

function textFor(path: FieldPath): RestartText | undefined {
  const last = path.segments.at(-1);
  if (last?.kind !== "key") return undefined;
  if (last.key === "restartAt") return "time";
  return last.key.startsWith(STRIMZI) ? "true" : undefined;
}

/** The text in the field, if it is a text. */
export function restartText(object: KubeObject, path: FieldPath): string | undefined {
  const found = valueAt(object, path);
  return typeof found === "string" ? found : undefined;
}

/**
 * Why a workload that has rolled out otherwise has not restarted yet, if its operator shows that; undefined if it has restarted.
 */
export function restarting(object: KubeObject, path: FieldPath): Progress | undefined {
  const text = restartText(object, path);
  if (text === undefined) return undefined;
  if (textFor(path) === "true")
    return { state: "Rolling", message: `waiting for Strimzi to restart all pods and to remove ${path}` };
  if (groupKindOf(object) !== ARGO_ROLLOUT || textFor(path) !== "time") return undefined;
  const restarted = at(object, "status", "restartedAt");
  if (typeof restarted === "string" && Date.parse(restarted) === Date.parse(text)) return undefined;
  return { state: "Rolling", message: `some of its pods are older than ${path}` };
}

/**
 * The time to write for a change, in full seconds as operators write such times. The next second, because pods that started
 * earlier in the same second may have the former value.
 */
export function restartTime(changed: string): string {
  const next = (Math.floor(Date.parse(changed) / 1000) + 1) * 1000;
  return new Date(next).toISOString().replace(".000Z", "Z");
}

export const RESTARTS_ANNOTATION = "inlay.dev/restarts";

/** The most restarts that `maxRestarts` of the configuration may permit, so that the annotation stays short. */
export const MOST_RESTARTS = 100;

/** The length of a time in ISO 8601 with milliseconds, and a blank. */
const LENGTH = 25;

/** In ms, ascending. Anyone who may change the workload may change the annotation, so other texts are ignored. */
function restartTimesIn(text: unknown): readonly number[] {
  if (typeof text !== "string" || text.length > MOST_RESTARTS * LENGTH) return [];
  const times = text.split(" ").map((each) => Date.parse(each));
  return times.filter(Number.isFinite).sort((a, b) => a - b);
}

export const restartTimesText = (times: readonly number[]): string =>
  times.map((each) => new Date(each).toISOString()).join(" ");

/** The cached part of a workload: there may be thousands. */
export interface Workload {
  /** What its pods read, one entry for each object and way. */
  readonly references: readonly PodReference[];
  /** Its pods read more objects than are kept, so it has no `references`. */
  readonly hasTooManyReferences?: true;
  readonly progress: Progress;
  /** A change of its template changes no pod until a user resumes it. */
  readonly paused: boolean;
  /** It uses the pod template of another object. Its controller rejects a template of its own beside that. */
  readonly templateElsewhere?: true;
  /** New pods are created only after the old ones are deleted. */
  readonly onDelete: boolean;
  /** If so, what Inlay needs to replace its pods. */
  readonly replacing?: PodReplacement;
  /** A Job that is never restarted: the next run of its CronJob replaces it, or it is a copy. */
  readonly isPassing?: true;
  /** For a copy, the Job that it represents. */
  readonly copied?: { readonly name: string; readonly uid: string };
  /** It has more than one replica. */
  readonly isMany?: true;
  /** The names of containers without a readiness probe, if the pods have to become ready. */
  readonly unprobed: readonly string[];
  /** The uids of its owners. */
  readonly owners: readonly string[];
  /** The stamps of rollouts in its pod template, or in its restart field. */
  readonly stamps: readonly string[];
  /** The annotations of its pod template that a restart may have written, by key, if there are any. */
  readonly marks?: Readonly<Record<string, string>>;
  /** The text in its restart field, if it has one. */
  readonly restart?: string;
  /** The times of its last restarts for changing values, if it has any; in ms, ascending. */
  readonly restarts?: readonly number[];
  /**
   * A hash of its pod template. Only for kinds of which each change of the template replaces the pods, unless users replace the pods, and
   * not if the template is too large or has too many references.
   */
  readonly templateHash?: string;
  /** The labels of its pods. */
  readonly labels: Readonly<Record<string, string>>;
  /** Its annotations for Reloader, if any; for a copy, those of the Job. */
  readonly reloaderAnnotations?: ReloaderAnnotations;
}

/** The paths in a workload. */
export interface WorkloadPaths {
  /** The path of its pod template, if it has one. */
  readonly template?: string;
  /** The path of its restart field, if that is not an annotation of its pod template. */
  readonly restart?: string;
}

/** The kinds that need no path in a binding, with the path of their pod template. */
export const WORKLOAD_KINDS = {
  Deployment: { apiVersion: "apps/v1", template: "spec.template" },
  StatefulSet: { apiVersion: "apps/v1", template: "spec.template" },
  DaemonSet: { apiVersion: "apps/v1", template: "spec.template" },
  CronJob: { apiVersion: "batch/v1", template: "spec.jobTemplate.spec.template" },
  Job: { apiVersion: "batch/v1", template: "spec.template" },
  Rollout: { apiVersion: "argoproj.io/v1alpha1", template: "spec.template" },
} as const satisfies Record<string, KnownWorkload>;

interface KnownWorkload {
  readonly apiVersion: string;
  readonly template: string;
}

/** Undefined for another kind. */
export const knownWorkload = (kind: string): KnownWorkload | undefined =>
  Object.hasOwn(WORKLOAD_KINDS, kind) ? WORKLOAD_KINDS[kind as keyof typeof WORKLOAD_KINDS] : undefined;

/** How many labels, annotations of restarts, owners and containers without a probe are kept. */
const MAX_KEPT = 256;
const MAX_LABEL_LENGTH = 317;
const MAX_RESTART_LENGTH = 32 * 1024;
/** The most characters of a template that is compared with its former state. */
const MAX_HASHED = 64 * 1024;

/** Shared empty values. */
const NONE: readonly never[] = [];
const NO_TEXTS = {};

/**
 * `template`: the path of the pod template. Without one, as in a Rollout that uses the template of a Deployment, there are no
 * references. `restart`: the path of the restart field, if that is another field. Of lists that have few elements in practice, the first ones
 * are kept.
 */
export function workloadOf(
  object: KubeObject,
  template: FieldPath | undefined,
  restart?: FieldPath,
  view = STANDARD_VIEW,
  mostReferences = Number.POSITIVE_INFINITY,
): Workload {
  const pods = template && valueAt(object, template);
  const podSpec = at(pods, "spec");
  const { spec, metadata } = object;
  const groupKind = groupKindOf(object);
  const isAJob = groupKind === JOB;
  const progress = progressOf(object);
  const replacing = replacingOf(object);
  const text = restart && restartText(object, restart)?.slice(0, MAX_RESTART_LENGTH);
  const restarts = restartTimesIn(metadata.annotations?.[RESTARTS_ANNOTATION]);
  const references = podReferences(podSpec, mostReferences + 1);
  const isOver = references.filter((each) => !isBeside(each)).length > mostReferences;
  const marks = Object.entries(textsOf(pods, "annotations"))
    .filter(([, each]) => isMark(each))
    .slice(0, MAX_KEPT);
  const texts = [...marks.map(([, each]) => each), ...(text === undefined ? [] : [text])];
  const original = isAJob ? copied(object) : undefined;
  const annotations = view.annotationsOf(original?.annotations ?? metadata.annotations, textsOf(pods, "annotations"));
  return {
    references: isOver ? NONE : orNone(references),
    ...(isOver && { hasTooManyReferences: true as const }),
    progress: (restart && progress.state === "Done" ? restarting(object, restart) : undefined) ?? progress,
    paused: at(spec, "paused") === true,
    ...(pods === undefined && isObject(spec) && groupKind === ARGO_ROLLOUT && { templateElsewhere: true as const }),
    ...(marks.length > 0 && { marks: Object.fromEntries(marks) }),
    ...(text !== undefined && { restart: text }),
    ...(restarts.length > 0 && { restarts }),
    ...(isObject(pods) && numberOf(at(spec, "replicas")) > 1 && { isMany: true as const }),
    onDelete: isOnDelete(spec),
    // A hash of a large template takes longer than all else.
    ...(!isOver &&
      groupKind.startsWith("apps/") &&
      isObject(pods) &&
      !isOnDelete(spec) &&
      jsonLength(pods, MAX_HASHED) <= MAX_HASHED && { templateHash: hashOf(pods) }),
    ...(replacing && { replacing }),
    ...(isAJob && isPassing(object) && { isPassing: true as const }),
    ...(original && { copied: { name: original.name, uid: original.uid } }),
    unprobed: orNone(groupKind.startsWith("batch/") ? NONE : unprobedIn(podSpec).slice(0, MAX_KEPT).filter(isName)),
    owners: orNone(
      (metadata.ownerReferences ?? NONE).slice(0, MAX_KEPT).flatMap(({ uid }) => (isName(uid) ? [uid] : [])),
    ),
    stamps: orNone(texts.filter(isStamp)),
    labels: firstOf(textsOf(pods, "labels")),
    ...(annotations !== undefined && { reloaderAnnotations: annotations }),
  };
}

const HASH_LENGTH = 16;
const hashOf = (pods: object) =>
  createHash("sha256").update(stringifyJson(pods)).digest("base64url").slice(0, HASH_LENGTH);

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

function firstOf(texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(texts);
  const isKept = entries.length <= MAX_KEPT && entries.every((each) => each.every(isLabelText));
  return isKept ? texts : Object.fromEntries(entries.slice(0, MAX_KEPT).filter((each) => each.every(isLabelText)));
}

/** Longer texts are no names, uids or labels. Kinds without a schema of pods may have them. */
const isName = (text: string): boolean => text.length <= MAX_NAME_LENGTH;
const isLabelText = (text: string): boolean => text.length <= MAX_LABEL_LENGTH;

const orNone = <T>(all: readonly T[]): readonly T[] => (all.length === 0 ? NONE : all);
