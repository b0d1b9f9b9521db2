/** What a binding depends on, one object or all that match, and the keys under which streams share that. */
import { apiVersionOf, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import type { Identity, WatchIdentity } from "../kube/identity.ts";
import type { Scope } from "../kube/list-watch.ts";
import type { PodReference } from "../workloads/pod-references.ts";
import type { WorkloadPaths } from "../workloads/workload.ts";
import { objectKey } from "./reflector.ts";

/** An object that a binding depends on, and as whom it is read. */
export interface ObjectSubscription extends WatchIdentity {
  ref: ObjectRef;
  /** It is a workload. What rollouts have to know of it is kept too, and told to those who may list the kind. */
  workload?: WorkloadPaths;
}

/** The objects of a kind in one namespace, or of the cluster if the kind belongs to it. */
export interface CollectionSubscription extends WatchIdentity {
  resource: Resource;
  namespace: string | undefined;
  /** As the API server takes it; empty for all. */
  labels: string;
  /** Globs; undefined for all. */
  names: readonly string[] | undefined;
  /** Globs of those that are left out. */
  exceptNames?: readonly string[] | undefined;
  /** What their spec says is kept too. Only for kinds whose spec is no secret. */
  whole?: true;
  /** They are workloads. What rollouts have to know of each is kept too. */
  workload?: WorkloadPaths;
  /** Of workloads, those whose pods read this. */
  consumersOf?: Consumed;
  /** It is told only which objects there are, and what of them Reloader's annotations are about. */
  choice?: true;
  /** The fields of each object that are kept too, as paths of keys alone. Only what changes in them is a change. */
  fields?: readonly string[];
  /** Only those in which one of the kept fields is that text. */
  having?: FieldText;
}

export interface FieldText {
  readonly field: string;
  readonly text: string;
}

/** What pods of the same namespace read, by whichever keys. */
export type Consumed = Pick<PodReference, "kind" | "name">;

export type Subscription = ObjectSubscription | CollectionSubscription;

export const isCollection = (dependency: Subscription): dependency is CollectionSubscription => "labels" in dependency;

/** Whether it shows what there is, or what is in it: that is nobody's to know who may not list the kind himself. */
export const isTelling = (dependency: Subscription): boolean =>
  isCollection(dependency) || dependency.workload !== undefined;

export const resourceOf = (dependency: Subscription): Resource =>
  isCollection(dependency) ? dependency.resource : dependency.ref.resource;

export const namespaceOf = (dependency: Subscription): string | undefined =>
  isCollection(dependency) ? dependency.namespace : dependency.ref.namespace;

export const resourceKey = (resource: Pick<Resource, "group" | "version" | "plural">) =>
  `${apiVersionOf(resource)}/${resource.plural}`;

/** Under which a stream tells of changes: an object's key, or for a collection what the keys of its objects begin with. */
export function subjectKey(dependency: Subscription): string {
  if (!isCollection(dependency)) return objectKey(dependency.ref.namespace, dependency.ref.name);
  const place = dependency.namespace === undefined ? "" : `${dependency.namespace}/`;
  if (dependency.having !== undefined) return havingKey(place, dependency.having);
  return dependency.consumersOf === undefined ? place : consumersKey(place, dependency.consumersOf);
}

/** Of the consumers of something among the objects whose keys begin so. No object has such a key: none has an empty name. */
export const consumersKey = (place: string, { kind, name }: Consumed) => `${place}/${kind}/${name}`;

/** Of those with a text in a field, likewise. */
export const havingKey = (place: string, { field, text }: FieldText) => `${place}/${field}/${text}`;

/** By what is kept of each object: of a workload that goes by where things stand in it. */
export const projectionKey = (dependency: Subscription): string => {
  const { template = "", restart = "" } = dependency.workload ?? {};
  const { fields = [], having = undefined } = isCollection(dependency) ? dependency : {};
  return [template, restart, ...fields, ...(having === undefined ? [] : ["by", having.field])].join("|");
};

/** Those who have the same one share a stream. `scope` is what the stream is asked for. */
export function streamKeyOf(identity: Identity, scope: Scope, dependency: Subscription, tenant = ""): string {
  const { resource, namespace = "", name = "", labels = "", form } = scope;
  const place = [identity, resourceKey(resource), namespace, name, labels, form];
  return [...place, projectionKey(dependency), tenant].join("|");
}

/** Whether more than metadata is looked at, of which there may be much. Little of it is kept. */
export const looksAtWhole = (dependency: Subscription): boolean =>
  dependency.workload !== undefined ||
  (isCollection(dependency) &&
    (dependency.whole === true || dependency.fields?.every((path) => /^metadata\b/.test(path)) === false));

/** A binding for a thousand namespaces asks for each of its subscriptions several times in a reconcile. */
const keys = new WeakMap<Subscription, string>();

export function subscriptionKey(dependency: Subscription): string {
  const known = keys.get(dependency) ?? keyOf(dependency);
  keys.set(dependency, known);
  return known;
}

const keyOf = (dependency: Subscription): string =>
  [
    dependency.identity,
    resourceKey(resourceOf(dependency)),
    subjectKey(dependency),
    dependency.wide ? "wide" : "",
    projectionKey(dependency),
    ...(isCollection(dependency)
      ? [
          dependency.whole ? "whole" : "",
          dependency.choice ? "choice" : "",
          dependency.labels,
          // No glob is empty or has a slash, but it may have a bar.
          [...(dependency.names ?? ["*"]), "", ...(dependency.exceptNames ?? [])].join("/"),
        ]
      : []),
  ].join("|");
