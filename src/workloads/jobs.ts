/**
 * Composes the Job that runs a CronJob at once, as `kubectl create job --from` does. Composes a copy of a Job that never runs, with a name
 * derived from the Job's uid, and composes the Job again from that copy, without the fields that the Job controller added. No I/O.
 */
import { createHash } from "node:crypto";
import { FieldPath } from "../apimachinery/field-path.ts";
import { at, fieldsAt } from "../apimachinery/fields.ts";
import { parseJson, sameJson, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject, Resource } from "../apimachinery/objects.ts";
import { JOB } from "./group-kinds.ts";
import { isStamp } from "./rollout-stamp.ts";

/**
 * An annotation of a copy's pod template: the identity of the Job, and the fields that the copy lacks. A change of it increments
 * the generation, because it is part of the spec.
 */
const COPY_OF = "inlay.dev/copy-of";
/** A copy has no other label, so that no selector takes it for the Job or for a part of an application. */
const COPY_LABELS = { "inlay.dev/copy": "true" };
const BY_CONTROLLER = ["controller-uid", "job-name"].flatMap((name) => [name, `batch.kubernetes.io/${name}`]);

/** The content of COPY_OF. */
interface Original {
  name: string;
  uid: string;
  /** Of the Job when it was copied. */
  resourceVersion: string;
  metadata: JsonObject;
  /** The fields of the spec that keep a copy from running; null if the Job had none. */
  spec: JsonObject;
}

export const isJob = ({ group, kind }: Pick<Resource, "group" | "kind">): boolean => `${group}/${kind}` === JOB;

/** A Job of a CronJob, which the next run replaces, or a copy. */
export function isPassing(job: KubeObject): boolean {
  const owners = (job.metadata.ownerReferences ?? []) as unknown as JsonObject[];
  return textIn(job) !== undefined || owners.some(({ kind }) => kind === "CronJob");
}

/** The Job of a copy, as the copy says; undefined for an object that is not a copy or does not have the name of one. */
export function copied(job: KubeObject): { name: string; uid: string; annotations: unknown } | undefined {
  const original = read(textIn(job));
  const { name, uid } = original;
  if (typeof name !== "string" || typeof uid !== "string" || job.metadata.name !== copyName(uid)) return undefined;
  return { name, uid, annotations: at(original, "metadata", "annotations") };
}

export const copyName = (uid: string): string =>
  `inlay-copy-${createHash("sha256").update(uid).digest("hex").slice(0, 20)}`;

/** Why a Job can't be recreated. */
export function whyNoCopy(job: KubeObject): string | undefined {
  if (at(job, "spec", "manualSelector") === true) return "it selects its pods itself (spec.manualSelector)";
  return at(job, "spec", "managedBy") === undefined ? undefined : "another controller runs it (spec.managedBy)";
}

/** All fields except apiVersion, kind and name. */
export function copyOf(job: KubeObject): JsonObject {
  const { template, ...spec } = ownSpecOf(job);
  const annotations = { ...fieldsAt(template, "metadata", "annotations"), [COPY_OF]: stringifyJson(originalOf(job)) };
  return {
    metadata: { labels: COPY_LABELS },
    spec: { ...spec, template: podsOf(template, { annotations }), suspend: true, parallelism: 0 },
  };
}

/** Whether an object is exactly what copyOf composes for the Job. The API server has set all defaults in the Job. */
export function isCopyOf(object: KubeObject, job: KubeObject): boolean {
  const { labels = {}, ownerReferences = [], finalizers = [] } = object.metadata;
  const found = { metadata: { labels }, spec: ownSpecOf(object) };
  const isFree = ownerReferences.length === 0 && finalizers.length === 0;
  return isFree && isUnchanged(object) && sameJson(found, copyOf(job));
}

/** Whether the spec never changed: the API server counts its changes, and the Job controller makes none. */
export const isUnchanged = ({ metadata }: KubeObject): boolean => metadata.generation === 1;

/** The record of a Job in its copy. */
export function originalOf({ metadata, spec }: KubeObject): Original {
  const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
  const { suspend = null, parallelism = null } = fieldsAt(spec);
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    metadata: { labels: besides(labels), annotations, ownerReferences: ownerReferences as unknown as JsonValue[] },
    spec: { suspend, parallelism },
  };
}

/** The spec without the fields that the Job controller added. */
function ownSpecOf({ spec }: KubeObject | JsonObject): JsonObject {
  const { selector: _, template, ...rest } = fieldsAt(spec);
  return { ...rest, template: podsOf(template) };
}

/** Undefined for an object that is not a copy of that Job. Unknown fields of the record are ignored. */
export function originalIn(copy: KubeObject, uid: string): Original | undefined {
  const { name, resourceVersion, metadata, spec, uid: of } = read(textIn(copy));
  if (of !== uid || typeof name !== "string" || typeof resourceVersion !== "string") return undefined;
  const { labels = {}, annotations = {}, ownerReferences = [] } = fieldsAt(metadata);
  const { suspend = null, parallelism = null } = fieldsAt(spec);
  return {
    name,
    uid,
    resourceVersion,
    metadata: { labels, annotations, ownerReferences },
    spec: { suspend, parallelism },
  };
}

/** All fields except apiVersion, kind and name, with an annotation in the pod template. */
export function jobToCreate(
  { spec }: KubeObject | JsonObject,
  { metadata, spec: own }: Original,
  annotation: string,
  value: string,
): JsonObject {
  const { selector: _, template, suspend: __, parallelism: ___, ...rest } = fieldsAt(spec);
  const { [COPY_OF]: ____, ...kept } = fieldsAt(template, "metadata", "annotations");
  const annotations = { ...kept, [annotation]: value };
  const given = Object.fromEntries(Object.entries(own).filter(([, each]) => each !== null));
  return { metadata, spec: { ...rest, ...given, template: podsOf(template, { annotations }) } };
}

/**
 * Whether a Job was created from `whole`, a result of jobToCreate. Restart annotations are not compared: another binding writes
 * its own.
 */
export function isCreatedFrom(job: KubeObject, whole: JsonObject): boolean {
  const found = { metadata: originalOf(job).metadata, spec: unstamped(ownSpecOf(job)) };
  const expected = { metadata: fieldsAt(whole, "metadata"), spec: unstamped(ownSpecOf(whole)) };
  const { finalizers = [] } = job.metadata;
  return finalizers.length === 0 && sameJson(found, expected);
}

function unstamped({ template, ...spec }: JsonObject): JsonObject {
  const annotations = Object.entries(fieldsAt(template, "metadata", "annotations"));
  const others = annotations.filter(([, value]) => typeof value !== "string" || !isStamp(value));
  return { ...spec, template: podsOf(template, { annotations: Object.fromEntries(others) }) };
}

/** A pod template without the labels that the Job controller added. */
function podsOf(template: unknown, more: JsonObject = {}): JsonObject {
  const labels = besides(fieldsAt(template, "metadata", "labels"));
  return { ...fieldsAt(template), metadata: { ...fieldsAt(template, "metadata"), labels, ...more } };
}

function textIn({ spec }: KubeObject): string | undefined {
  const text = at(spec, "template", "metadata", "annotations", COPY_OF);
  return typeof text === "string" ? text : undefined;
}

function read(text = "null"): JsonObject {
  try {
    return fieldsAt(parseJson(text));
  } catch {
    return {};
  }
}

const besides = (labels: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(labels).filter(([key]) => !BY_CONTROLLER.includes(key)));

/** The annotation that distinguishes the Job from those of the schedule. */
const MANUAL = { "cronjob.kubernetes.io/instantiate": "manual" };

export const isCronJob = ({ group, kind }: Pick<Resource, "group" | "kind">): boolean =>
  group === "batch" && kind === "CronJob";

/** A suspended CronJob runs nothing by its schedule either. */
export const isSuspended = (cronJob: KubeObject): boolean => at(cronJob, "spec", "suspend") === true;

/**
 * The name is the same for the same restart, so a second try creates no second Job. The name of a CronJob has at most 52
 * characters.
 */
export function manualJobName({ metadata: { name, uid } }: KubeObject, stamp: string): string {
  const hash = createHash("sha256").update(`${uid} ${stamp}`).digest("hex");
  return `${name.slice(0, 52)}-${hash.slice(0, 10)}`;
}

/** The fields that such a Job sets. */
export const MANUAL_JOB_PATHS: readonly FieldPath[] = [
  "metadata.labels",
  "metadata.annotations",
  "metadata.ownerReferences",
  "spec",
].map((path) => FieldPath.parse(path));

/** All fields except apiVersion, kind and name. Its pods have the restart annotation, as those of the next run do. */
export function manualJobOf({ apiVersion, kind, metadata, spec }: KubeObject, stamped: JsonObject): JsonObject {
  const { labels = {}, annotations } = fieldsAt(spec, "jobTemplate", "metadata");
  const { template, ...job } = fieldsAt(spec, "jobTemplate", "spec");
  const pods = fieldsAt(template, "metadata");
  return {
    metadata: {
      labels,
      annotations: { ...fieldsAt(annotations), ...MANUAL },
      // blockOwnerDeletion would need a permission on finalizers.
      ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true }],
    },
    spec: {
      ...job,
      template: {
        ...fieldsAt(template),
        metadata: { ...pods, annotations: { ...fieldsAt(pods["annotations"]), ...stamped } },
      },
    },
  };
}
