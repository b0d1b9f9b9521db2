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

/** Kinds that create pods. Their pods are reported as the workload. */
const MAKERS = ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"];
/** The most namespaces that are listed one by one, if the user may not list a kind in all of them. */
const MAX_NAMESPACES = 16;
/** The most namespaces that the message about skipped namespaces names. */
const MAX_NAMED = 3;

type Kind = Pick<KubeObject, "apiVersion" | "kind">;
/** What `take` keeps of the objects of a kind, wherever they are listed. */
type List = <T>(kind: Kind, take: (object: KubeObject) => T | undefined) => Promise<Reading<T[]>[]>;

/** Workloads of the object's namespace, and pods that belong to no known workload. */
export async function findReferrers(tools: Tools, traced: Traced): Promise<Reading<Referrer[]>[]> {
  const list: List = async (kind, take) => [await listIfServed(tools, kind, traced.namespace, take)];
  const { wanted, unreadable } = await addClasses([traced], list);
  return [...(await findWorkloads(wanted, list)), ...(await findPods(tools, traced, wanted)), ...unreadable];
}

/** For many objects, each in its own namespace. Keeps only the workloads that refer to one of them. */
export async function findReferrersOfAll(tools: Tools, objects: readonly Traced[]): Promise<Reading<Referrer[]>[]> {
  if (objects.length === 0) return [];
  const namespaces = [...new Set(objects.map(({ namespace }) => namespace))].toSorted();
  const list: List = (kind, take) => listWidely(namespaces, (namespace) => listIfServed(tools, kind, namespace, take));
  const { wanted, unreadable } = await addClasses(objects, list);
  return [...(await findWorkloads(wanted, list)), ...unreadable];
}

/** One list of the whole cluster. If that is not allowed, lists of some namespaces, and a message that names the others. */
export async function listWidely<T>(
  namespaces: readonly string[],
  list: (namespace: string | undefined) => Promise<Reading<T[]>>,
): Promise<Reading<T[]>[]> {
  const all = await list(undefined);
  if (all.state !== "Unreadable") return [all];
  const readings = await Promise.all(namespaces.slice(0, MAX_NAMESPACES).map(list));
  const left = namespaces.filter((_, at) => readings[at]?.state !== "Found");
  if (left.length === 0) return readings;
  const message = `${all.message}; skipped these namespaces with copies: ${firstOf(left, MAX_NAMED)}`;
  return [...readings.filter(({ state }) => state === "Found"), { state: "Unreadable", message }];
}

/**
 * The objects that pods may refer to, by namespace, kind and name. A SecretProviderClass leads to the objects that it provides, with their
 * keys.
 */
type Wanted = ReadonlyMap<string, readonly { object: Traced; keys?: readonly string[] | undefined }[]>;

/** Adds the SecretProviderClasses that provide the objects to pods, if the kind is served. */
async function addClasses(
  objects: readonly Traced[],
  list: List,
): Promise<{ wanted: Wanted; unreadable: Reading<never>[] }> {
  const wanted = new Map(objects.map((object) => [idOf(object), [{ object }]]));
  if (!objects.some(({ kind }) => kind === "Secret")) return { wanted, unreadable: [] };
  const readings = await list(PROVIDER_CLASS, ({ kind, metadata: { namespace = "", name }, spec }) => {
    const brought = (syncedBy(spec) ?? []).flatMap(({ secret, keys }) =>
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

async function findWorkloads(wanted: Wanted, list: List): Promise<Reading<Referrer[]>[]> {
  const kinds = Object.entries(WORKLOAD_KINDS).map(([kind, { apiVersion, template }]) => {
    const path = FieldPath.parse(template);
    return list({ apiVersion, kind }, (object) => {
      // The CronJob is listed instead of its Jobs.
      if (kind === "Job" && ownerOf(object)?.kind === "CronJob") return undefined;
      const found = referrersIn(wanted, { apiVersion, kind }, object, workloadOf(object, path).references);
      return found.length === 0 ? undefined : found;
    });
  });
  const readings = (await Promise.all(kinds)).flat();
  return readings.map((each) => (each.state === "Found" ? { state: each.state, it: each.it.flat() } : each));
}

/** Most pods belong to a workload, which their metadata shows. Only the other pods are read completely. */
async function findPods({ reader }: Tools, { namespace }: Traced, wanted: Wanted): Promise<Reading<Referrer[]>[]> {
  const names = await reader.list({ resource: PODS, namespace, form: "metadata" }, (pod) =>
    MAKERS.includes(ownerOf(pod)?.kind ?? "") ? undefined : pod.metadata.name,
  );
  if (names.state !== "Found") return [names];
  const take = (pod: KubeObject) =>
    referrersIn(wanted, { apiVersion: "v1", kind: "Pod" }, pod, podReferences(pod["spec"]));
  const read = names.it.map((name) => reader.get({ resource: PODS, namespace, name }, take, "whole"));
  // A pod that was deleted meanwhile refers to nothing.
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
