/** Composes the Job that runs a CronJob at once, as `kubectl create job --from` does. No I/O. */
import { createHash } from "node:crypto";
import { FieldPath } from "../apimachinery/field-path.ts";
import { at, fieldsAt } from "../apimachinery/fields.ts";
import type { JsonObject, KubeObject, Resource } from "../apimachinery/objects.ts";

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
