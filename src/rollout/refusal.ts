/** What a binding says of its rollout comes in, and a workload; why that is not restarted at all goes out. Pure. */
import type { Dependent, RolloutSpec } from "../model/rollout.ts";

export function refusalOf({ requireReadiness }: RolloutSpec, { workload, ref }: Dependent): string | undefined {
  const { unprobed, templateElsewhere } = workload;
  if (templateElsewhere)
    return `${ref.name} has its pod template in another object (spec.workloadRef); have that one restarted in its place`;
  if (requireReadiness && unprobed.length > 0)
    return `spec.rollout.requireReadiness: no readiness probe in ${unprobed.join(", ")}`;
  return undefined;
}
