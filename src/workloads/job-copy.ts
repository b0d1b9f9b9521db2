/**
 * A Job comes in; a copy of it that never runs goes out, under a name that follows from the Job's uid, and from that copy the Job as it is to
 * be made anew, without what the Job controller added. No I/O.
 */
import { createHash } from "node:crypto";
import { at, fieldsAt } from "../apimachinery/fields.ts";
import { parseJson, stringifyJson } from "../apimachinery/json.ts";
import type { JsonObject, JsonValue, KubeObject, Resource } from "../apimachinery/objects.ts";
import { JOB } from "./group-kinds.ts";

/** On a copy: what the Job had that the copy has not, and which Job it was. */
const COPY_OF = "inlay.dev/copy-of";
/** A copy has no other label: nobody takes it for the Job, or for a part of what the Job is part of. */
const COPY_LABELS = { "inlay.dev/copy": "true" };
const BY_CONTROLLER = ["controller-uid", "job-name"].flatMap((name) => [name, `batch.kubernetes.io/${name}`]);

/** What stands in COPY_OF. */
interface Original {
  name: string;
  uid: string;
  /** Of the Job when it was copied. */
  resourceVersion: string;
  metadata: JsonObject;
  /** Fields of the spec by which a copy is kept from running; null where there was none. */
  spec: JsonObject;
}

export const isJob = ({ group, kind }: Pick<Resource, "group" | "kind">): boolean => `${group}/${kind}` === JOB;

/** One that a CronJob made, which the next run replaces, or a copy. */
export function isPassing({ metadata }: KubeObject): boolean {
  const owners = (metadata.ownerReferences ?? []) as unknown as JsonObject[];
  return metadata.annotations?.[COPY_OF] !== undefined || owners.some(({ kind }) => kind === "CronJob");
}

/** The Job that a copy stands for, as the copy says; undefined for what is no copy, and has not the name of one. */
export function copied({ metadata }: KubeObject): { name: string; uid: string; annotations: unknown } | undefined {
  const said = read(metadata.annotations?.[COPY_OF]);
  const { name, uid } = said;
  if (typeof name !== "string" || typeof uid !== "string" || metadata.name !== copyName(uid)) return undefined;
  return { name, uid, annotations: at(said, "metadata", "annotations") };
}

export const copyName = (uid: string): string =>
  `inlay-copy-${createHash("sha256").update(uid).digest("hex").slice(0, 20)}`;

/** Why a Job can't be made anew. */
export function whyNoCopy(job: KubeObject): string | undefined {
  if (at(job, "spec", "manualSelector") === true) return "it chooses its pods itself (spec.manualSelector)";
  return at(job, "spec", "managedBy") === undefined ? undefined : "another controller runs it (spec.managedBy)";
}

/** All but apiVersion, kind and name. */
export function copyOf({ metadata, spec }: KubeObject): JsonObject {
  const { selector: _, template, ...rest } = fieldsAt(spec);
  const { labels = {}, annotations = {}, ownerReferences = [] } = metadata;
  const original: Original = {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    metadata: { labels: besides(labels), annotations, ownerReferences: ownerReferences as unknown as JsonValue[] },
    spec: { suspend: rest["suspend"] ?? null, parallelism: rest["parallelism"] ?? null },
  };
  return {
    metadata: { labels: COPY_LABELS, annotations: { [COPY_OF]: stringifyJson(original) } },
    spec: { ...rest, suspend: true, parallelism: 0, template: podsOf(template) },
  };
}

/** Undefined for what is no copy of that Job. */
export function originalIn({ metadata }: KubeObject, uid: string): Original | undefined {
  const original = read(metadata.annotations?.[COPY_OF]);
  return original["uid"] === uid ? (original as unknown as Original) : undefined;
}

/** All but apiVersion, kind and name, with an annotation in the pod template. */
export function madeAnew(
  copy: KubeObject,
  { metadata, spec: kept }: Original,
  annotation: string,
  value: string,
): JsonObject {
  const { selector: _, template, suspend: __, parallelism: ___, ...rest } = fieldsAt(copy, "spec");
  const annotations = { ...fieldsAt(template, "metadata", "annotations"), [annotation]: value };
  const given = Object.fromEntries(Object.entries(kept).filter(([, each]) => each !== null));
  return { metadata, spec: { ...rest, ...given, template: podsOf(template, { annotations }) } };
}

/** A pod template without what the Job controller added. */
function podsOf(template: unknown, more: JsonObject = {}): JsonObject {
  const labels = besides(fieldsAt(template, "metadata", "labels"));
  return { ...fieldsAt(template), metadata: { ...fieldsAt(template, "metadata"), labels, ...more } };
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
