/** Finds the workloads whose pods refer to a Secret or ConfigMap, kind by kind. */
import { FieldPath } from "../apimachinery/field-path.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import type { KubeObject } from "../apimachinery/objects.ts";
import { PODS } from "../apimachinery/resources.ts";
import { type PodReference, podReferences } from "../workloads/pod-references.ts";
import { PROVIDER_CLASS, syncedBy } from "../workloads/provider-class.ts";
import { WORKLOAD_KINDS, workloadOf } from "../workloads/workload.ts";
import { idOf } from "./copies.ts";
import type { Reading } from "./reading.ts";
import type { Referrer } from "./restarts.ts";
import { listIfServed, type Tools } from "./tools.ts";
import type { Traced } from "./trace-result.ts";

/** Whose pods are told of by the workload that has them made. */
const MAKERS = ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"];
/** So many namespaces are looked at one by one, where the user may not list a kind in all of them. */
const MAX_NAMESPACES = 16;
/** So many are named of those that were not looked at. */
const MAX_NAMED = 3;

type Kind = Pick<KubeObject, "apiVersion" | "kind">;
/** What `take` keeps of the objects of a kind, wherever they are looked for. */
type List = <T>(kind: Kind, take: (object: KubeObject) => T | undefined) => Promise<Reading<T[]>[]>;

/** Of its namespace, pods too that belong to no workload that is known. */
export async function lookAtReferrers(tools: Tools, traced: Traced): Promise<Reading<Referrer[]>[]> {
  const list: List = async (kind, take) => [await listIfServed(tools, kind, traced.namespace, take)];
  const { wanted, unreadable } = await lookForClasses([traced], list);
  return [...(await lookAtWorkloads(wanted, list)), ...(await lookAtPods(tools, traced, wanted)), ...unreadable];
}

/** Of many objects, each in its own namespace. Only what refers to one of them is kept of the workloads of a cluster. */
export async function lookAtReferrersOfAll(tools: Tools, objects: readonly Traced[]): Promise<Reading<Referrer[]>[]> {
  if (objects.length === 0) return [];
  const namespaces = [...new Set(objects.map(({ namespace }) => namespace))].toSorted();
  const list: List = (kind, take) => listWidely(namespaces, (namespace) => listIfServed(tools, kind, namespace, take));
  const { wanted, unreadable } = await lookForClasses(objects, list);
  return [...(await lookAtWorkloads(wanted, list)), ...unreadable];
}

/** One list of the whole cluster; where that is not allowed, of some namespaces, and of which not. */
export async function listWidely<T>(
  namespaces: readonly string[],
  list: (namespace: string | undefined) => Promise<Reading<T[]>>,
): Promise<Reading<T[]>[]> {
  const all = await list(undefined);
  if (all.state !== "Unreadable") return [all];
  const readings = await Promise.all(namespaces.slice(0, MAX_NAMESPACES).map(list));
  const left = namespaces.filter((_, at) => readings[at]?.state !== "Found");
  if (left.length === 0) return readings;
  const message = `${all.message}; not looked at in namespaces with copies: ${firstOf(left, MAX_NAMED)}`;
  return [...readings.filter(({ state }) => state === "Found"), { state: "Unreadable", message }];
}

/** What pods may refer to, by namespace, kind and name: the objects that it brings, with their keys where it is a class. */
type Wanted = ReadonlyMap<string, readonly { object: Traced; keys?: readonly string[] | undefined }[]>;

/** With the SecretProviderClasses that bring the objects to pods, where there is such a kind. */
async function lookForClasses(
  objects: readonly Traced[],
  list: List,
): Promise<{ wanted: Wanted; unreadable: Reading<never>[] }> {
  const wanted = new Map(objects.map((object) => [idOf(object), [{ object }]]));
  if (!objects.some(({ kind }) => kind === "Secret")) return { wanted, unreadable: [] };
  const readings = await list(PROVIDER_CLASS, ({ kind, metadata: { namespace = "", name }, spec }) => {
    const brought = syncedBy(spec).flatMap(({ secret, keys }) =>
      (wanted.get(`${namespace}/Secret/${secret}`) ?? []).map(({ object }) => ({ object, keys })),
    );
    return brought.length === 0 ? undefined : ([`${namespace}/${kind}/${name}`, brought] as const);
  });
  const classes = readings.flatMap((each) => (each.state === "Found" ? each.it : []));
  return {
    wanted: new Map([...wanted, ...classes]),
    unreadable: readings.filter((each) => each.state === "Unreadable"),
  };
}

async function lookAtWorkloads(wanted: Wanted, list: List): Promise<Reading<Referrer[]>[]> {
  const kinds = Object.entries(WORKLOAD_KINDS).map(([kind, { apiVersion, template }]) => {
    const path = FieldPath.parse(template);
    return list({ apiVersion, kind }, (object) => {
      // The CronJob is listed, and its Jobs with it.
      if (kind === "Job" && ownerOf(object)?.kind === "CronJob") return undefined;
      const found = referrersIn(wanted, { apiVersion, kind }, object, workloadOf(object, path).references);
      return found.length === 0 ? undefined : found;
    });
  });
  const readings = (await Promise.all(kinds)).flat();
  return readings.map((each) => (each.state === "Found" ? { state: each.state, it: each.it.flat() } : each));
}

/** There are many, and most belong to a workload: their metadata tells which, and only the others are read. */
async function lookAtPods({ reader }: Tools, { namespace }: Traced, wanted: Wanted): Promise<Reading<Referrer[]>[]> {
  const names = await reader.list({ resource: PODS, namespace, form: "metadata" }, (pod) =>
    MAKERS.includes(ownerOf(pod)?.kind ?? "") ? undefined : pod.metadata.name,
  );
  if (names.state !== "Found") return [names];
  const take = (pod: KubeObject) =>
    referrersIn(wanted, { apiVersion: "v1", kind: "Pod" }, pod, podReferences(pod["spec"]));
  const read = names.it.map((name) => reader.get({ resource: PODS, namespace, name }, take, "whole"));
  // One that has gone meanwhile refers to nothing.
  return (await Promise.all(read)).filter(({ state }) => state !== "NotFound");
}

/** One for each object that its pods refer to. */
function referrersIn(
  wanted: Wanted,
  { apiVersion, kind }: Kind,
  { metadata }: KubeObject,
  references: readonly PodReference[],
): Referrer[] {
  const { namespace = "", name, labels = {}, ownerReferences = [] } = metadata;
  const found = references.flatMap(({ kind, name, by, keys }) =>
    (wanted.get(`${namespace}/${kind}/${name}`) ?? []).map(({ object, keys: brought = keys }) => ({
      object,
      reference: { by, ...(brought && { keys: brought }) },
    })),
  );
  const owner = kind === "Pod" ? ownerOf({ metadata }) : undefined;
  return [...Map.groupBy(found, ({ object }) => object)].map(([object, all]) => ({
    apiVersion,
    kind,
    namespace,
    name,
    ...(owner && { owner: `${owner.kind} ${owner.name}` }),
    object,
    references: all.map(({ reference }) => reference),
    labels,
    owners: ownerReferences.map(({ uid }) => uid),
  }));
}

const ownerOf = ({ metadata }: Pick<KubeObject, "metadata">) =>
  metadata.ownerReferences?.find(({ controller }) => controller);
