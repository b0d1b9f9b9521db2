/** A binding comes in; which workloads it restarts, for which values, and how far it is with that go out. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import { type Group, groupsOf, type RolloutSpec } from "../api/rollout.ts";
import type { LabelSelector } from "../apimachinery/label-selector.ts";
import type { RolloutExplanation } from "./explanation.ts";

export type Chosen = NonNullable<RolloutSpec["targets"]>[number];

export function explainRollout({ spec, status }: SecretBinding): RolloutExplanation {
  const rollout = spec.rollout as RolloutSpec;
  const { revision, digests = {}, lastStartTime: last, pending } = status?.rollout ?? {};
  return {
    suspended: rollout.suspend ?? false,
    restarts: inWords(rollout),
    ...(revision !== undefined && { revision }),
    trackedValues: Object.keys(digests).sort(),
    ...(last !== undefined && { lastStartTime: last }),
    ...(pending && {
      pending: {
        firstChangeTime: pending.firstChangeTime,
        ...(pending.startTime !== undefined && { startTime: pending.startTime }),
        reason: pending.reason,
        message: pending.message,
        workloads: (pending.workloads ?? []).map(({ uid: _, stamp: __, ...workload }) => workload),
      },
    }),
  };
}

/** Which workloads restart. */
export function inWords(rollout: RolloutSpec): string[] {
  return groupsOf(rollout).flatMap((group) =>
    groupInWords(group).map((words) => (group.name === undefined ? words : `step ${group.name}: ${words}`)),
  );
}

function groupInWords({ consumersOf = [], kinds, ownedByTargets, targets = [] }: Group): string[] {
  const among = `among ${kinds.join(", ")}`;
  return [
    ...(consumersOf.length > 0 ? [`workloads whose pods refer to ${consumersOf.join(", ")}, ${among}`] : []),
    ...(ownedByTargets ? [`workloads that belong to a target, ${among}`] : []),
    ...targets.map(chosenInWords),
  ];
}

function chosenInWords({ kind, name, selector, template, restartPath }: Chosen): string {
  const which =
    name === undefined ? `every ${kind} that matches ${selectorInWords(selector ?? {})}` : `${kind} ${name}`;
  const field = restartPath ?? template;
  return field === undefined ? which : `${which}, by ${field}`;
}

/** What has to hold. */
export function selectorInWords(selector: LabelSelector & { names?: string[]; exceptNames?: string[] }): string {
  const { names = [], exceptNames = [], matchLabels = {}, matchExpressions = [] } = selector;
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const others = matchExpressions.map(({ key, operator, values = [] }) => [key, operator, ...values].join(" "));
  const chosen = [...names, ...labels, ...others].join(", ");
  return exceptNames.length === 0 ? chosen : `${chosen || "any name"} except ${exceptNames.join(", ")}`;
}
