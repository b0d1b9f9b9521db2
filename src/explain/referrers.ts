/** A Secret or ConfigMap comes in; the workloads of its namespace whose pods refer to it go out, kind by kind. */

import { FieldPath } from "../apimachinery/field-path.ts";
import { type KubeObject, parseApiVersion, type Resource } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { PODS } from "../apimachinery/resources.ts";
import { attempt } from "../kube/access-error.ts";
import { type PodReference, podReferences } from "../workloads/pod-references.ts";
import { PROVIDER_CLASS, syncedBy } from "../workloads/provider-class.ts";
import { WORKLOAD_KINDS, workloadOf } from "../workloads/workload.ts";
import { foundOr, type Reading } from "./reading.ts";
import type { Referrer } from "./restarts.ts";
import type { Tools } from "./tools.ts";
import type { Traced, WorkloadTrace } from "./trace.ts";

export type Found = Referrer & Omit<WorkloadTrace, "restarts">;

/** Whose pods are told of by the workload that has them made. */
const MAKERS = ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"];

export async function lookAtReferrers(tools: Tools, traced: Traced): Promise<Reading<Found[]>[]> {
  const classes = await lookAtClasses(tools, traced);
  const wanted: Wanted = new Map([[`${traced.kind}/${traced.name}`, undefined], ...foundOr(classes, [])]);
  const kinds = Object.entries(WORKLOAD_KINDS).map(async ([kind, { apiVersion, template }]) => {
    const resource = await resourceOf(tools, apiVersion, kind);
    if (resource === undefined) return [];
    if (resource instanceof Problem) return [{ state: "Unreadable" as const, message: resource.message }];
    const path = FieldPath.parse(template);
    const scope = { resource, namespace: traced.namespace, form: "whole" as const };
    return [
      await tools.reader.list(scope, (object) => {
        // One of a CronJob is told of with it.
        if (kind === "Job" && ownerOf(object)?.kind === "CronJob") return undefined;
        const reference = referenceTo(wanted, workloadOf(object, path).references);
        return reference && foundOf({ apiVersion, kind }, object, reference);
      }),
    ];
  });
  const unreadable = classes.state === "Unreadable" ? [classes] : [];
  return [...(await Promise.all(kinds)).flat(), ...(await lookAtPods(tools, traced, wanted)), ...unreadable];
}

/** The SecretProviderClasses that bring it to pods, where there is such a kind. */
async function lookAtClasses(
  tools: Tools,
  traced: Traced,
): Promise<Reading<[string, readonly string[] | undefined][]>> {
  const { apiVersion, kind } = PROVIDER_CLASS;
  const resource = traced.kind === "Secret" ? await resourceOf(tools, apiVersion, kind) : undefined;
  if (resource === undefined) return { state: "Found", it: [] };
  if (resource instanceof Problem) return { state: "Unreadable", message: resource.message };
  const scope = { resource, namespace: traced.namespace, form: "whole" as const };
  return tools.reader.list(scope, ({ metadata, spec }) => {
    const synced = syncedBy(spec).find(({ secret }) => secret === traced.name);
    return synced && [`${kind}/${metadata.name}`, synced.keys];
  });
}

/** Only what not every cluster serves is asked for; RBAC would say that the user may not list it, served or not. */
async function resourceOf({ discovery }: Tools, apiVersion: string, kind: string) {
  const { group, version } = parseApiVersion(apiVersion);
  if (group.includes(".")) return attempt(discovery.byKind(apiVersion, kind));
  const resource: Resource = {
    group,
    version,
    kind,
    plural: `${kind.toLowerCase()}s`,
    namespaced: true,
    hasStatus: true,
  };
  return resource;
}

/** There are many, and most belong to a workload: their metadata tells which, and only the others are read. */
async function lookAtPods({ reader }: Tools, { namespace }: Traced, wanted: Wanted): Promise<Reading<Found[]>[]> {
  const names = await reader.list({ resource: PODS, namespace, form: "metadata" }, (pod) =>
    MAKERS.includes(ownerOf(pod)?.kind ?? "") ? undefined : pod.metadata.name,
  );
  if (names.state !== "Found") return [names];
  const take = (pod: KubeObject) => {
    const reference = referenceTo(wanted, podReferences(pod["spec"]));
    return reference === undefined ? [] : [foundOf({ apiVersion: "v1", kind: "Pod" }, pod, reference)];
  };
  const read = names.it.map((name) => reader.get({ resource: PODS, namespace, name }, take, "whole"));
  // One that has gone meanwhile refers to nothing.
  return (await Promise.all(read)).filter(({ state }) => state !== "NotFound");
}

function foundOf(
  { apiVersion, kind }: { apiVersion: string; kind: string },
  object: KubeObject,
  { by, keys }: PodReference,
): Found {
  const { name, labels = {}, ownerReferences = [] } = object.metadata;
  const owner = kind === "Pod" ? ownerOf(object) : undefined;
  return {
    apiVersion,
    kind,
    name,
    by: [...by],
    ...(keys && { keys: [...keys] }),
    ...(owner && { owner: `${owner.kind} ${owner.name}` }),
    labels,
    owners: ownerReferences.map(({ uid }) => uid),
  };
}

/** What pods may refer to, by kind and name, with the keys that come by it where that is not what is traced itself. */
type Wanted = ReadonlyMap<string, readonly string[] | undefined>;

/** One reference for all of them. */
function referenceTo(wanted: Wanted, references: readonly PodReference[]): PodReference | undefined {
  const found = references.flatMap((each): PodReference[] => {
    const id = `${each.kind}/${each.name}`;
    if (!wanted.has(id)) return [];
    const keys = wanted.get(id);
    return [keys === undefined ? each : { ...each, keys }];
  });
  const [first] = found;
  if (first === undefined || found.length === 1) return first;
  const { keys: _, ...all } = first;
  const by = [...new Set(found.flatMap((each) => each.by))].toSorted();
  if (found.some(({ keys }) => keys === undefined)) return { ...all, by };
  return { ...all, by, keys: [...new Set(found.flatMap(({ keys = [] }) => keys))].toSorted() };
}

interface Owner {
  kind: string;
  name: string;
  controller?: boolean;
}

const ownerOf = ({ metadata }: KubeObject): Owner | undefined =>
  ((metadata.ownerReferences ?? []) as unknown as Owner[]).find(({ controller }) => controller);
