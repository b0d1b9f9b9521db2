/** The group and kind of a workload as one text, such as `apps/Deployment`, and those of kinds with rules of their own. */
import { type KubeObject, parseApiVersion } from "../apimachinery/objects.ts";

export const ARGO_ROLLOUT = "argoproj.io/Rollout";
export const JOB = "batch/Job";

export const groupKindOf = ({ apiVersion, kind }: KubeObject): string => `${parseApiVersion(apiVersion).group}/${kind}`;
