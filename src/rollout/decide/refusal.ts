/** Decides whether a binding's rules keep a workload from being restarted, and why. Pure. */
import type { RolloutSpec } from "../../api/rollout.ts";
import { isJob } from "../../workloads/job-copy.ts";
import { givenText } from "../../workloads/restart-field.ts";
import type { Dependent } from "../types.ts";

/** `isUnbudgeted`: no PodDisruptionBudget is known to select its pods. */
export function refusalOf(
  { requireReadinessProbe, requireDisruptionBudget }: RolloutSpec,
  dependent: Dependent,
  isUnbudgeted: boolean,
): string | undefined {
  const { workload, ref, stampAt, isRestartField } = dependent;
  if (workload.templateElsewhere && !isRestartField)
    return `${ref.name} has its pod template in another object (spec.workloadRef); name it in spec.rollout.targets with restartPath: spec.restartAt`;
  if (isJob(ref.resource) && workload.progress.state === "Rolling")
    return `${ref.name} is running; Inlay recreates it when it has ended`;
  // Writing it again has no effect, and pods that have restarted already would keep the former values.
  if (givenText(dependent) === "true" && workload.restart === "true")
    return `${ref.name} is still restarting by ${stampAt}; Inlay restarts it again when its operator has removed that`;
  if (requireReadinessProbe && workload.unprobed.length > 0)
    return `spec.rollout.requireReadinessProbe: no readiness probe in ${workload.unprobed.join(", ")}; add one`;
  if (requireDisruptionBudget && isUnbudgeted)
    return `spec.rollout.requireDisruptionBudget: no PodDisruptionBudget selects the pods of ${ref.name}; add one`;
  return undefined;
}
