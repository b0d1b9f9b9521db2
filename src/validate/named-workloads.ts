/** The workloads that the rollout of a binding names, with their places in the binding. Workloads that it only selects are not among them. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { Inputs } from "../render/inputs.ts";
import { knownWorkload } from "../workloads/workload.ts";

export function namedWorkloads(
  { metadata, spec: { rollout } }: SecretBinding,
  kinds: Inputs["kinds"],
): { ref: ObjectRef; place: string }[] {
  const { steps = [], targets = [] } = rollout ?? {};
  const lists = [
    { each: targets, at: "spec.rollout.targets" },
    ...steps.map((step, position) => ({ each: step.targets ?? [], at: `spec.rollout.steps[${position}].targets` })),
  ];
  return lists.flatMap(({ each, at }) =>
    each.flatMap(
      ({ kind, name, apiVersion = knownWorkload(kind)?.apiVersion, namespace = metadata.namespace ?? "" }, position) =>
        name === undefined || apiVersion === undefined
          ? []
          : [{ ref: { resource: kinds.resourceOf(apiVersion, kind), namespace, name }, place: `${at}[${position}]` }],
    ),
  );
}
