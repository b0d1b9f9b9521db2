/** What a binding says of its rollout comes in, and a workload; why that is not restarted at all goes out. Pure. */
import type { RolloutSpec } from "../../api/rollout.ts";
import { isJob } from "../../workloads/job-copy.ts";
import { givenText } from "../../workloads/restart-field.ts";
import type { Dependent } from "../types.ts";

/** `isUnbudgeted`: it is known to need a PodDisruptionBudget that there isn't. */
export function refusalOf(
  { requireReadinessProbe, requireDisruptionBudget }: RolloutSpec,
  dependent: Dependent,
  isUnbudgeted: boolean,
): string | undefined {
  const { workload, ref, stampAt, isRestartField } = dependent;
  if (workload.templateElsewhere && !isRestartField)
    return `${ref.name} has its pod template in another object (spec.workloadRef); have it restarted by spec.rollout.targets with restartPath: spec.restartAt`;
  if (isJob(ref.resource) && workload.progress.state === "Rolling")
    return `${ref.name} runs; it is made anew when it has ended`;
  // To say it again says nothing, and pods that have restarted already would keep what they began with.
  if (givenText(dependent) === "true" && workload.restart === "true")
    return `${ref.name} has been told to restart by ${stampAt} before; it is told again when it has`;
  if (requireReadinessProbe && workload.unprobed.length > 0)
    return `spec.rollout.requireReadinessProbe: no readiness probe in ${workload.unprobed.join(", ")}`;
  if (requireDisruptionBudget && isUnbudgeted)
    return `spec.rollout.requireDisruptionBudget: no PodDisruptionBudget selects the pods of ${ref.name}`;
  return undefined;
}
