/** What a binding says of its rollout comes in, and a workload; why that is not restarted at all goes out. Pure. */
import type { Dependent, RolloutSpec } from "../model/rollout.ts";

/** `isUnbudgeted`: it is known to need a PodDisruptionBudget that there isn't. */
export function refusalOf(
  { requireReadiness, requireDisruptionBudget }: RolloutSpec,
  { workload, ref, isRestartField }: Dependent,
  isUnbudgeted: boolean,
): string | undefined {
  const { unprobed, templateElsewhere } = workload;
  if (templateElsewhere && !isRestartField)
    return `${ref.name} has its pod template in another object (spec.workloadRef); have it restarted by spec.rollout.targets with restartPath: spec.restartAt`;
  if (requireReadiness && unprobed.length > 0)
    return `spec.rollout.requireReadiness: no readiness probe in ${unprobed.join(", ")}`;
  if (requireDisruptionBudget && isUnbudgeted)
    return `spec.rollout.requireDisruptionBudget: no PodDisruptionBudget selects the pods of ${ref.name}`;
  return undefined;
}
