/** Traces a Secret or ConfigMap: lists all objects that may refer to it, and to copies that bindings with a rollout write from it. */
import { fieldsOfTarget, isAfterRollout, type SecretBinding, type StoredBinding, type Target } from "../api/binding.ts";
import { digestParts, type Group, groupsOf } from "../api/rollout.ts";
import { asRecorded } from "../api/status-records.ts";
import { FieldPath } from "../apimachinery/field-path.ts";
import { nameMatcher } from "../apimachinery/glob.ts";
import { matchesLabels } from "../apimachinery/label-selector.ts";
import { firstOf } from "../apimachinery/name-list.ts";
import { apiVersionOf, isSameKind, type KubeObject, type ObjectRef } from "../apimachinery/objects.ts";
import { Problem } from "../apimachinery/problem.ts";
import { CONFIG_MAPS, INGRESSES, PODS, SECRET_BINDINGS, SECRETS, SERVICE_ACCOUNTS } from "../apimachinery/resources.ts";
import type { UsesOfKeys } from "../rollout/discover/written-values.ts";
import { coversObject } from "../sources/grant-rules.ts";
import { connectionKinds } from "../sources/registry.ts";
import { ALL_KEYS, type ReadTemplate, usesBySource } from "../sources/uses.ts";
import { type PodReference, podReferences } from "../workloads/pod-references.ts";
import { PROVIDER_CLASS, syncedBy } from "../workloads/provider-class.ts";
import { knownWorkload, WORKLOAD_KINDS, workloadOf } from "../workloads/workload.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import { foundOr, type Reading, seenOf } from "./reading.ts";
import { type Chosen, waysOf } from "./rollout.ts";
import { grantsIn } from "./sources.ts";
import { recordMatcher } from "./targets.ts";
import { listIfServed, readerOfTemplates, type Tools } from "./tools.ts";
import {
  bindingTraces,
  connectionUses,
  granteesOf,
  isGatewayCertificate,
  isIngressCertificate,
  pullsWith,
  sourcesAt,
  type Trace,
  type Traced,
  type WorkloadTrace,
  writerTrace,
} from "./trace-result.ts";

interface Copy {
  binding: SecretBinding;
  object: Traced;
  /** The source values of each of its keys. */
  uses: UsesOfKeys;
  /** The binding restarts the consumers of its targets. */
  isConsumed: boolean;
}

/** How a pod refers to an object, and which keys it names this way; all keys if undefined. */
export type Reference = Pick<PodReference, "by" | "keys">;

type WrittenValues = typeof import("../rollout/discover/written-values.ts");

const KINDS = ["Secret", "ConfigMap"] as const;

/** Loads the template engine only if a binding writes such an object, which is rare. */
export async function copiesOf(bindings: readonly SecretBinding[]): Promise<Copy[]> {
  const writing = bindings.filter(({ spec }) => spec.rollout && spec.targets.some((target) => kindOf(target)));
  if (writing.length === 0) return [];
  const written = await import("../rollout/discover/written-values.ts");
  return writing.flatMap((binding) => copiesBy(binding, written));
}

/** Uses the records in status, which also name objects in namespaces that a selector matches. */
function copiesBy(binding: SecretBinding, { usesOfFields, writtenUses }: WrittenValues): Copy[] {
  const { metadata, spec, status } = binding;
  const ofFields = finish(usesOfFields(binding));
  // It restarts nothing.
  if (ofFields instanceof Problem) return [];
  const groups = spec.rollout === undefined ? [] : groupsOf(spec.rollout);
  const isConsumed = groups.some(({ consumersOfTargets }) => consumersOfTargets);
  const found = new Map<string, Copy>();
  for (const target of spec.targets) {
    const kind = kindOf(target);
    // A target that is written after the rollout restarts nothing.
    if (kind === undefined || isAfterRollout(target)) continue;
    const uses = writtenUses(ofFields, target);
    for (const { namespace = metadata.namespace as string, name } of status?.targets?.filter(
      recordMatcher(target, binding),
    ) ?? []) {
      const object = { kind, namespace, name };
      if (!found.has(idOf(object))) found.set(idOf(object), { binding, object, uses, isConsumed });
    }
  }
  return [...found.values()];
}

const kindOf = (target: Target) => KINDS.find((kind) => isSameKind(target, { apiVersion: "v1", kind }));

export const idOf = ({ kind, namespace, name }: Traced): string => `${namespace}/${kind}/${name}`;

/** The copies of an object for which bindings restart workloads, by the ids of the copies. Several bindings may write one copy. */
export function consumedCopies(copies: readonly Copy[], source: Traced): Map<string, Copy[]> {
  const consumed = copies.filter((copy) => {
    const names = sourcesAt(copy.binding, source);
    const isOfIt = sourcesBehind(copy).some((name) => names.includes(name));
    return copy.isConsumed && isOfIt && idOf(copy.object) !== idOf(source);
  });
  return Map.groupBy(consumed, ({ object }) => idOf(object));
}

/** The names of the sources of some keys of a copy; of all keys if `keys` is undefined. */
const sourcesBehind = ({ uses }: Copy, keys?: readonly string[]): string[] =>
  uses(keys).map((use) => digestParts(use).source);

/** The keys of a source that pods use through a copy, or `*` for all of them. */
function keysBehind({ binding, uses }: Copy, source: Traced, references: readonly Reference[]): string[] {
  const names = sourcesAt(binding, source);
  const taken = references.flatMap(({ keys }) => uses(keys)).map(digestParts);
  return taken.flatMap((each) => (names.includes(each.source) ? [each.key] : []));
}

export interface Referrer extends Pick<WorkloadTrace, "apiVersion" | "kind" | "name" | "owner"> {
  namespace: string;
  /** The object that its pods refer to: the traced object, or a copy of its values. */
  object: Traced;
  references: readonly Reference[];
  /** The labels of the workload, not of its pods. */
  labels: Readonly<Record<string, string>>;
  /** The uids of its owners. */
  owners: readonly string[];
}

/** Whether the binding restarts a workload when a value of the traced object changes that the workload depends on. */
export function restarterOf(
  binding: SecretBinding,
  traced: Traced,
  copies: readonly Copy[],
  readTemplate: ReadTemplate,
): (workload: Referrer) => boolean {
  const { metadata, spec, status } = binding;
  const { rollout } = spec;
  const names = sourcesAt(binding, traced);
  const copyAt = new Map(copies.flatMap((copy) => (copy.binding === binding ? [[idOf(copy.object), copy]] : [])));
  const tracedCopy = copyAt.get(idOf(traced));
  /** The sources that change together with the traced object. A copy changes when one of its sources does. */
  const changing = new Set([...names, ...(tracedCopy ? sourcesBehind(tracedCopy) : [])]);
  if (rollout === undefined || changing.size === 0) return () => false;
  const before = spec.targets.filter((target) => !isAfterRollout(target));
  const uses = usesBySource({ ...binding, spec: { ...spec, targets: before } }, readTemplate);
  const hasFields = before.some((target) => fieldsOfTarget(target).length > 0);
  const isUsed = !hasFields || [...changing].some((name) => (uses.get(name) ?? []).length > 0);
  const owners = new Set((status?.targets ?? []).flatMap(({ uid }) => uid ?? []));
  /** By consumersOf, consumersOfTargets or ownedByTargets. */
  const isFound = (group: Group, { object, namespace, ...workload }: Referrer): boolean => {
    const { consumersOf = [], consumersOfTargets, kinds, ownedByTargets } = group;
    if (!kinds.some((kind) => isKind(workload, kind))) return false;
    const ways = waysOf(group);
    const references = workload.references.filter(({ by }) => ways?.includes(by) ?? true);
    const isSource = idOf(object) === idOf(traced) && consumersOf.some((name) => names.includes(name));
    if (isSource && references.length > 0) return true;
    const copy = consumersOfTargets ? copyAt.get(idOf(object)) : undefined;
    const behind = copy && references.flatMap(({ keys }) => sourcesBehind(copy, keys));
    if (behind?.some((name) => changing.has(name))) return true;
    const isOwned = namespace === metadata.namespace && workload.owners.some((uid) => owners.has(uid));
    return isUsed && isOwned && ownedByTargets === true;
  };
  const isNamed = ({ targets = [] }: Group, workload: Referrer): boolean =>
    isUsed && targets.some((target) => isChosen(workload, target, metadata.namespace));
  return (workload) => groupsOf(rollout).some((group) => isFound(group, workload) || isNamed(group, workload));
}

function isChosen(
  workload: Referrer,
  { apiVersion, kind, namespace, name, selector }: Chosen,
  own: string | undefined,
): boolean {
  if (!isKind(workload, kind, apiVersion) || workload.namespace !== (namespace ?? own)) return false;
  if (name !== undefined) return workload.name === name;
  const { names, exceptNames, ...labels } = selector ?? {};
  return nameMatcher(names, exceptNames)(workload.name) && matchesLabels(labels, workload.labels);
}

/** In any version. */
const isKind = (
  workload: Pick<Referrer, "apiVersion" | "kind">,
  kind: string,
  apiVersion = knownWorkload(kind)?.apiVersion,
): boolean => apiVersion !== undefined && isSameKind(workload, { apiVersion, kind });

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
async function findReferrers(tools: Tools, traced: Traced): Promise<Reading<Referrer[]>[]> {
  const list: List = async (kind, take) => [await listIfServed(tools, kind, traced.namespace, take)];
  const { wanted, unreadable } = await addClasses([traced], list);
  return [...(await findWorkloads(wanted, list)), ...(await findPods(tools, traced, wanted)), ...unreadable];
}

/** For many objects, each in its own namespace. Keeps only the workloads that refer to one of them. */
async function findReferrersOfAll(tools: Tools, objects: readonly Traced[]): Promise<Reading<Referrer[]>[]> {
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

interface Restarter {
  binding: SecretBinding;
  restarts(workload: Referrer): boolean;
}

/** Undefined if the pods use no value of the traced object through a copy. `copies`: by the ids of their objects. */
export function workloadTrace(
  workload: Referrer,
  traced: Traced,
  copies: ReadonlyMap<string, readonly Copy[]>,
  restarters: readonly Restarter[],
): WorkloadTrace | undefined {
  const { apiVersion, kind, namespace, name, object, references, owner } = workload;
  const isCopy = idOf(object) !== idOf(traced);
  const keys = isCopy
    ? (copies.get(idOf(object)) ?? []).flatMap((copy) => keysBehind(copy, traced, references))
    : references.flatMap((each) => each.keys ?? [ALL_KEYS]);
  if (isCopy && keys.length === 0) return undefined;
  return {
    apiVersion,
    kind,
    ...(namespace !== traced.namespace && { namespace }),
    name,
    ...(isCopy && { copy: { kind: object.kind, name: object.name } }),
    references: [...new Set(references.map(({ by }) => by))].toSorted(),
    ...(!keys.includes(ALL_KEYS) && { keys: [...new Set(keys)].toSorted() }),
    ...(owner !== undefined && { owner }),
    restarts: restarters
      .filter(({ restarts }) => restarts(workload))
      .map(({ binding: { metadata, spec } }) => ({
        binding: `${metadata.namespace}/${metadata.name}`,
        suspended: spec.suspend === true || spec.rollout?.suspend === true,
      })),
  };
}

/** An object that does not exist is traced too: its users wait for it. Throws Error if it has none. */
export async function trace(tools: Tools, traced: Traced): Promise<Trace> {
  const { kind, namespace, name } = traced;
  const ref: ObjectRef = { resource: kind === "Secret" ? SECRETS : CONFIG_MAPS, namespace, name };
  const unreadable: string[] = [];
  /** Records what can't be read; the other results are still shown. */
  const seen = <T>(reading: Reading<T[]>): T[] => {
    if (reading.state === "Unreadable") unreadable.push(reading.message);
    return foundOr(reading, []);
  };
  const [object, bindings, grants, referrers, accounts, certificates, connections] = await Promise.all([
    tools.reader.get(ref, ({ metadata }) => ({ version: metadata.resourceVersion, labels: metadata.labels ?? {} })),
    everywhere(namespace, (within) =>
      tools.reader.list({ resource: SECRET_BINDINGS, namespace: within, form: "whole" }, concerning(traced)),
    ),
    grantsIn(tools, namespace),
    findReferrers(tools, traced),
    kind === "Secret" ? pullers(tools, traced) : undefined,
    kind === "Secret" ? certificatesOf(tools, traced) : [],
    connectionsOf(tools, traced),
  ]);
  const found = bindings.flatMap(seen);
  const readTemplate = await readerOfTemplates(found);
  const objectLabels = object.state === "Found" ? object.it.labels : undefined;
  const copies = await copiesOf(found);
  const consumed = consumedCopies(copies, traced);
  const objects = [...consumed.values()].flatMap(([first]) => first?.object ?? []);
  const workloads = [...referrers, ...(await findReferrersOfAll(tools, objects))].flatMap(seen);
  const restarters = found.map((binding) => ({
    binding,
    restarts: restarterOf(binding, traced, copies, readTemplate),
  }));
  const granting = seen(grants).filter(({ spec }) => coversObject(spec, ref, objectLabels));
  const result: Trace = {
    object: { ...traced, ...seenOf(object), ...(object.state === "Found" && { resourceVersion: object.it.version }) },
    bindings: found.flatMap((binding) => bindingTraces(binding, traced, readTemplate)),
    writers: found.flatMap((binding) => writerTrace(binding, traced) ?? []),
    grants: granting.map(({ name, spec }) => ({ name, from: granteesOf(spec) })),
    workloads: workloads.flatMap((each) => workloadTrace(each, traced, consumed, restarters) ?? []),
    serviceAccounts: accounts === undefined ? [] : seen(accounts),
    certificates: certificates.flatMap((each) => seen(each)),
    connections: connections.flatMap((each) => seen(each)),
    unreadable: [...new Set(unreadable)],
  };
  if (object.state === "NotFound" && !isUsed(result))
    throw new Error(
      `there is no ${kind} ${namespace}/${name}, and nothing refers to it; list all with: kubectl get ${kind.toLowerCase()}s -A`,
    );
  return result;
}

const isUsed = ({ object: _, unreadable: __, ...uses }: Trace) => Object.values(uses).some(({ length }) => length > 0);

function concerning(traced: Traced): (object: KubeObject) => SecretBinding | undefined {
  return (object) => {
    const binding = asRecorded(object as unknown as StoredBinding);
    const isOf = sourcesAt(binding, traced).length > 0 || writerTrace(binding, traced) !== undefined;
    return isOf ? binding : undefined;
  };
}

/** In all namespaces. If that is not allowed, in the object's namespace, with a message. */
async function everywhere<T>(
  namespace: string,
  list: (namespace: string | undefined) => Promise<Reading<T[]>>,
): Promise<Reading<T[]>[]> {
  const all = await list(undefined);
  return all.state === "Unreadable" ? [all, await list(namespace)] : [all];
}

function pullers({ reader }: Tools, { namespace, name }: Traced): Promise<Reading<string[]>> {
  return reader.list({ resource: SERVICE_ACCOUNTS, namespace, form: "whole" }, (account) =>
    pullsWith(account, name) ? account.metadata.name : undefined,
  );
}

function connectionsOf(tools: Tools, traced: Traced): Promise<Reading<Trace["connections"]>[]> {
  return Promise.all(
    connectionKinds().map(({ resource, namedBy }) =>
      listIfServed(tools, { apiVersion: apiVersionOf(resource), kind: resource.kind }, traced.namespace, (object) => {
        const uses = connectionUses(namedBy(object), traced);
        return uses.length === 0 ? undefined : { kind: resource.kind, name: object.metadata.name, uses };
      }),
    ),
  );
}

async function certificatesOf(tools: Tools, traced: Traced): Promise<Reading<Trace["certificates"]>[]> {
  const of = (kind: string, isOf: (object: KubeObject) => boolean) => (object: KubeObject) =>
    isOf(object) ? { kind, namespace: object.metadata.namespace ?? "", name: object.metadata.name } : undefined;
  const ingresses = tools.reader.list(
    { resource: INGRESSES, namespace: traced.namespace, form: "whole" },
    of("Ingress", (ingress) => isIngressCertificate(ingress, traced.name)),
  );
  // Not requested unless it is served: the API server would answer Forbidden before NotFound.
  const gateway = { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway" };
  const isOfGateway = (each: KubeObject) => isGatewayCertificate(each, traced);
  const gateways = await everywhere(traced.namespace, (namespace) =>
    listIfServed(tools, gateway, namespace, of(gateway.kind, isOfGateway)),
  );
  return [await ingresses, ...gateways];
}
