/** The group and kind of a workload as one text, such as `apps/Deployment`, with constants for kinds that have special rules. */
import { type KubeObject, parseApiVersion } from "../apimachinery/objects.ts";

export const ARGO_ROLLOUT = "argoproj.io/Rollout";
export const JOB = "batch/Job";

export const groupKindOf = ({ apiVersion, kind }: KubeObject): string => `${parseApiVersion(apiVersion).group}/${kind}`;

/** Jobs and CronJobs: their pods are never updated. */
export const isBatch = ({ group }: { group: string }): boolean => group === "batch";
