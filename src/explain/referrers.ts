/** A Secret or ConfigMap comes in; the workloads of its namespace whose pods refer to it go out, kind by kind. */
import { FieldPath } from "../apimachinery/field-path.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { PODS } from "../apimachinery/resources.ts";
import { type PodReference, podReferences } from "../workloads/pod-references.ts";
import { PROVIDER_CLASS, syncedBy } from "../workloads/provider-class.ts";
import { WORKLOAD_KINDS, workloadOf } from "../workloads/workload.ts";
import { foundOr, type Reading } from "./reading.ts";
import type { Referrer } from "./restarts.ts";
import { listIfServed, type Tools } from "./tools.ts";
import type { Traced, WorkloadTrace } from "./trace-result.ts";

export type FoundReferrer = Referrer & Omit<WorkloadTrace, "restarts">;

/** Whose pods are told of by the workload that has them made. */
const MAKERS = ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"];

export async function lookAtReferrers(tools: Tools, traced: Traced): Promise<Reading<FoundReferrer[]>[]> {
  const classes = await lookAtClasses(tools, traced);
  const wanted: Wanted = new Map([[`${traced.kind}/${traced.name}`, undefined], ...foundOr(classes, [])]);
  const kinds = Object.entries(WORKLOAD_KINDS).map(([kind, { apiVersion, template }]) => {
    const path = FieldPath.parse(template);
    return listIfServed(tools, { apiVersion, kind }, traced.namespace, (object) => {
      // The CronJob is listed, and its Jobs with it.
      if (kind === "Job" && ownerOf(object)?.kind === "CronJob") return undefined;
      const found = referencesTo(wanted, workloadOf(object, path).references);
      return found.length === 0 ? undefined : foundOf({ apiVersion, kind }, object, found);
    });
  });
  const unreadable = classes.state === "Unreadable" ? [classes] : [];
  return [...(await Promise.all(kinds)), ...(await lookAtPods(tools, traced, wanted)), ...unreadable];
}

/** The SecretProviderClasses that bring it to pods, where there is such a kind. */
async function lookAtClasses(
  tools: Tools,
  traced: Traced,
): Promise<Reading<[string, readonly string[] | undefined][]>> {
  if (traced.kind !== "Secret") return { state: "Found", it: [] };
  return listIfServed(tools, PROVIDER_CLASS, traced.namespace, ({ kind, metadata, spec }) => {
    const synced = syncedBy(spec).find(({ secret }) => secret === traced.name);
    return synced && [`${kind}/${metadata.name}`, synced.keys];
  });
}

/** There are many, and most belong to a workload: their metadata tells which, and only the others are read. */
async function lookAtPods(
  { reader }: Tools,
  { namespace }: Traced,
  wanted: Wanted,
): Promise<Reading<FoundReferrer[]>[]> {
  const names = await reader.list({ resource: PODS, namespace, form: "metadata" }, (pod) =>
    MAKERS.includes(ownerOf(pod)?.kind ?? "") ? undefined : pod.metadata.name,
  );
  if (names.state !== "Found") return [names];
  const take = (pod: KubeObject) => {
    const found = referencesTo(wanted, podReferences(pod["spec"]));
    return found.length === 0 ? [] : [foundOf({ apiVersion: "v1", kind: "Pod" }, pod, found)];
  };
  const read = names.it.map((name) => reader.get({ resource: PODS, namespace, name }, take, "whole"));
  // One that has gone meanwhile refers to nothing.
  return (await Promise.all(read)).filter(({ state }) => state !== "NotFound");
}

function foundOf(
  { apiVersion, kind }: { apiVersion: string; kind: string },
  object: KubeObject,
  found: readonly PodReference[],
): FoundReferrer {
  const { name, labels = {}, ownerReferences = [] } = object.metadata;
  const owner = kind === "Pod" ? ownerOf(object) : undefined;
  return {
    apiVersion,
    kind,
    name,
    references: [...new Set(found.map(({ by }) => by))].toSorted(),
    ...(found.every(({ keys }) => keys !== undefined) && {
      keys: [...new Set(found.flatMap(({ keys = [] }) => keys))].toSorted(),
    }),
    ...(owner && { owner: `${owner.kind} ${owner.name}` }),
    labels,
    owners: ownerReferences.map(({ uid }) => uid),
  };
}

/** What pods may refer to, by kind and name, with the keys that come by it where that is not what is traced itself. */
type Wanted = ReadonlyMap<string, readonly string[] | undefined>;

/** With the keys that come by it, where a reference is to a class that brings what is traced. */
function referencesTo(wanted: Wanted, references: readonly PodReference[]): PodReference[] {
  return references.flatMap((each): PodReference[] => {
    const id = `${each.kind}/${each.name}`;
    if (!wanted.has(id)) return [];
    const keys = wanted.get(id);
    return [keys === undefined ? each : { ...each, keys }];
  });
}

const ownerOf = ({ metadata }: KubeObject) => metadata.ownerReferences?.find(({ controller }) => controller);
