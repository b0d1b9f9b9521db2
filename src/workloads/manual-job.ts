/** A CronJob comes in; the Job that runs it at once goes out, as `kubectl create job --from` makes it. No I/O. */
import { createHash } from "node:crypto";
import { FieldPath } from "../apimachinery/field-path.ts";
import { at, fieldsAt } from "../apimachinery/fields.ts";
import type { JsonObject, KubeObject, Resource } from "../apimachinery/objects.ts";

/** By this the CronJob controller and people tell it from a Job of the schedule. */
const MANUAL = { "cronjob.kubernetes.io/instantiate": "manual" };

export const isCronJob = ({ group, kind }: Pick<Resource, "group" | "kind">): boolean =>
  group === "batch" && kind === "CronJob";

/** Nothing runs by its schedule either. */
export const isSuspended = (cronJob: KubeObject): boolean => at(cronJob, "spec", "suspend") === true;

/** One for each restart: a second try comes to the same. The name of a CronJob has 52 characters at most. */
export function manualJobName({ metadata: { name, uid } }: KubeObject, stamp: string): string {
  const hash = createHash("sha256").update(`${uid} ${stamp}`).digest("hex");
  return `${name.slice(0, 52)}-${hash.slice(0, 10)}`;
}

/** What such a Job is written with. */
export const MANUAL_JOB_PATHS: readonly FieldPath[] = [
  "metadata.labels",
  "metadata.annotations",
  "metadata.ownerReferences",
  "spec",
].map((path) => FieldPath.parse(path));

/** All but apiVersion, kind and name. Its pods carry the stamp, as those of the next run do. */
export function manualJobOf({ apiVersion, kind, metadata, spec }: KubeObject, stamped: JsonObject): JsonObject {
  const { labels = {}, annotations } = fieldsAt(spec, "jobTemplate", "metadata");
  const { template, ...job } = fieldsAt(spec, "jobTemplate", "spec");
  const pods = fieldsAt(template, "metadata");
  return {
    metadata: {
      labels,
      annotations: { ...fieldsAt(annotations), ...MANUAL },
      // To block its owner's deletion would take a right on finalizers.
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
