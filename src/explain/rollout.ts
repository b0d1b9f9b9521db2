/** Describes which workloads a binding restarts, for which values, and the progress of the rollout. Pure. */
import type { SecretBinding } from "../api/binding.ts";
import { type Group, groupsOf, type RolloutSpec } from "../api/rollout.ts";
import type { LabelSelector } from "../apimachinery/label-selector.ts";
import { describeObject } from "../apimachinery/objects.ts";
import { PLACES } from "../workloads/pod-references.ts";
import type { RolloutExplanation } from "./explanation.ts";

export type Chosen = NonNullable<RolloutSpec["targets"]>[number];

export function explainRollout({ spec, status }: SecretBinding): RolloutExplanation {
  const rollout = spec.rollout as RolloutSpec;
  const { revision, digests = {}, unknownNamespaces, lastStartTime: last, pending } = status?.rollout ?? {};
  return {
    suspended: rollout.suspend ?? false,
    restarts: inWords(rollout),
    ...(revision !== undefined && { revision }),
    trackedValues: Object.keys(digests).sort(),
    ...(unknownNamespaces && { unknownNamespaces }),
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

/** Which workloads restart, and which other events restart them. */
export function inWords(rollout: RolloutSpec): string[] {
  const { restartOn = [], runCronJobs } = rollout;
  const workloads = groupsOf(rollout).flatMap((group) =>
    groupInWords(group).map((words) => (group.name === undefined ? words : `step ${group.name}: ${words}`)),
  );
  const events = restartOn.map((each) => (each === "SourceCreated" ? "created" : "deleted"));
  return [
    ...workloads,
    ...(events.length > 0 ? [`also when a source is ${events.join(" or ")}`] : []),
    ...(runCronJobs ? ["each restart of a CronJob runs a Job at once"] : []),
  ];
}

/** The kinds of reference that count for a group; undefined for all. */
export const waysOf = ({ consumersBy }: Group) => consumersBy?.map((way) => PLACES[way]);

function groupInWords(group: Group): string[] {
  const { consumersOf = [], consumersOfTargets, kinds, ownedByTargets, targets = [] } = group;
  const among = `among ${kinds.join(", ")}`;
  const ways = waysOf(group)?.join(" or ");
  const consumers = `workloads whose pods refer${ways === undefined ? "" : ` by ${ways}`} to`;
  return [
    ...(consumersOf.length > 0 ? [`${consumers} ${consumersOf.join(", ")}, ${among}`] : []),
    ...(consumersOfTargets ? [`${consumers} a Secret or ConfigMap that this binding writes, ${among}`] : []),
    ...(ownedByTargets ? [`workloads that belong to a target, ${among}`] : []),
    ...targets.map(chosenInWords),
  ];
}

function chosenInWords({ kind, namespace, name, selector, template, restartPath }: Chosen): string {
  const there = namespace === undefined ? "" : ` of namespace ${namespace}`;
  const which =
    name === undefined
      ? `every ${kind}${there} that matches ${selectorInWords(selector ?? {})}`
      : describeObject(kind, namespace, name);
  const field = restartPath ?? template;
  return field === undefined ? which : `${which}, by ${field}`;
}

/** The conditions of a selector, in words. */
export function selectorInWords(selector: LabelSelector & { names?: string[]; exceptNames?: string[] }): string {
  const { names = [], exceptNames = [], matchLabels = {}, matchExpressions = [] } = selector;
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const others = matchExpressions.map(({ key, operator, values = [] }) => [key, operator, ...values].join(" "));
  const chosen = [...names, ...labels, ...others].join(", ");
  return exceptNames.length === 0 ? chosen : `${chosen || "any name"} except ${exceptNames.join(", ")}`;
}
