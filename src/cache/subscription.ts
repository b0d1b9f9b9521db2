/** What a binding depends on: one object, or all objects that match. Also the keys by which subscriptions share streams. */
import { oncePerObject } from "../apimachinery/maps.ts";
import { apiVersionOf, type ObjectRef, type Resource } from "../apimachinery/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../apimachinery/resources.ts";
import type { Identity, WatchIdentity } from "../kube/identity.ts";
import type { Scope } from "../kube/list-watch.ts";
import type { PodReference } from "../workloads/pod-references.ts";
import type { WorkloadPaths } from "../workloads/workload.ts";
import { objectKey } from "./reflector.ts";

/** An object that a binding depends on, and the identity that reads it. */
export interface ObjectSubscription extends WatchIdentity {
  ref: ObjectRef;
  /** The object is a workload. The facts that rollouts need are cached too, and shown to accounts that may list the kind. */
  workload?: WorkloadPaths;
}

/** The objects of a kind in one namespace, or in the cluster if the kind is cluster-scoped. */
export interface CollectionSubscription extends WatchIdentity {
  resource: Resource;
  namespace: string | undefined;
  /** A label selector in the API server's syntax; empty for all. */
  labels: string;
  /** Globs; undefined for all. */
  names: readonly string[] | undefined;
  /** Globs of excluded names. */
  exceptNames?: readonly string[] | undefined;
  /** What is needed of the spec is cached too. Only for SecretGrants and SecretProviderClasses. */
  whole?: true;
  /** They are workloads. The facts that rollouts need are cached for each. */
  workload?: WorkloadPaths;
  /** Only workloads whose pods read this object. */
  consumersOf?: Consumed;
  /** Only the existence of objects, and the facts that Reloader's annotations refer to, count as changes. */
  choice?: true;
  /** The fields of each object that are cached too, as paths of keys alone. Only changes of these fields are reported. */
  fields?: readonly string[];
  /** Only objects in which this cached field has this text. */
  having?: FieldText;
}

export interface FieldText {
  readonly field: string;
  readonly text: string;
}

/** An object that pods of the same namespace read, by any of its keys. */
type Consumed = Pick<PodReference, "kind" | "name">;

export type Subscription = ObjectSubscription | CollectionSubscription;

export const isCollection = (dependency: Subscription): dependency is CollectionSubscription => "labels" in dependency;

/** Whether it shows which objects exist or what they contain, which only an account that may list the kind may know. */
export const showsObjects = (dependency: Subscription): boolean =>
  isCollection(dependency) || dependency.workload !== undefined;

export const resourceOf = (dependency: Subscription): Resource =>
  isCollection(dependency) ? dependency.resource : dependency.ref.resource;

export const namespaceOf = (dependency: Subscription): string | undefined =>
  isCollection(dependency) ? dependency.namespace : dependency.ref.namespace;

export const resourceKey = (resource: Pick<Resource, "group" | "version" | "plural">) =>
  `${apiVersionOf(resource)}/${resource.plural}`;

/** The subject under which a stream reports changes: the key of an object, or for a collection the common prefix of its objects' keys. */
export function subjectKey(dependency: Subscription): string {
  if (!isCollection(dependency)) return objectKey(dependency.ref.namespace, dependency.ref.name);
  const place = dependency.namespace === undefined ? "" : `${dependency.namespace}/`;
  if (dependency.having !== undefined) return havingKey(place, dependency.having);
  return dependency.consumersOf === undefined ? place : consumersKey(place, dependency.consumersOf);
}

/** The subject for the consumers of an object below a key prefix. It never equals an object's key, because names are not empty. */
export const consumersKey = (place: string, { kind, name }: Consumed) => `${place}/${kind}/${name}`;

/** The collection of workloads whose references are too many to be known, below a key prefix. */
export const unknownConsumersKey = (place: string) => `${place}/`;

/** The subject for objects with a text in a field, likewise. */
export const havingKey = (place: string, { field, text }: FieldText) => `${place}/${field}/${text}`;

/** Identifies the cached parts of each object. For workloads, these depend on the paths of their fields. */
export const projectionKey = (dependency: Subscription): string => {
  const { template = "", restart = "" } = dependency.workload ?? {};
  const { fields = [], having = undefined } = isCollection(dependency) ? dependency : {};
  return [template, restart, ...fields, ...(having === undefined ? [] : ["by", having.field])].join("|");
};

/** Subscriptions with the same key share a stream. `scope` is the scope that the stream requests. */
export function streamKeyOf(identity: Identity, scope: Scope, dependency: Subscription, tenant = ""): string {
  const { resource, namespace = "", name = "", labels = "", form } = scope;
  const place = [identity, resourceKey(resource), namespace, name, labels, form];
  return [...place, projectionKey(dependency), tenant].join("|");
}

/** Whether whole objects are requested, and not only metadata. Only a small part of each is cached. */
export const needsWholeObject = (dependency: Subscription): boolean =>
  dependency.workload !== undefined ||
  (isCollection(dependency) &&
    (dependency.whole === true || dependency.fields?.every((path) => /^metadata\b/.test(path)) === false));

/** Whether it is about Secrets or ConfigMaps. */
export const isOfSources = (dependency: Subscription): boolean =>
  [SECRETS, CONFIG_MAPS].some((each) => resourceKey(each) === resourceKey(resourceOf(dependency)));

/** Caches the keys: a binding for a thousand namespaces needs each key several times in a reconcile. */
export const subscriptionKey = oncePerObject((dependency: Subscription): string =>
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
          // No glob is empty or has a slash, but a glob may contain a bar.
          [...(dependency.names ?? ["*"]), "", ...(dependency.exceptNames ?? [])].join("/"),
        ]
      : []),
  ].join("|"),
);
