/** A stream that subscriptions share: which subscribers a change concerns, and which namespace the stream counts for. */
import { isDeepStrictEqual } from "node:util";
import type { ReloaderView } from "../api/reloader.ts";
import { type NameMatcher, nameMatcher } from "../apimachinery/glob.ts";
import { Counts, SetsByKey } from "../apimachinery/maps.ts";
import { type Resource, resourceName } from "../apimachinery/objects.ts";
import type { ApiError } from "../kube/api-error.ts";
import { CONTROLLER, homeOf } from "../kube/identity.ts";
import { sizeOf } from "../transform/budget.ts";
import { knownWorkload } from "../workloads/workload.ts";
import { type CachedObject, collectionsOf, isChoice, nameIn, type Projection, projectionFor } from "./cached-object.ts";
import type { Reflector, ReflectorState, StreamState } from "./reflector.ts";
import {
  isCollection,
  namespaceOf,
  projectionKey,
  resourceOf,
  type Subscription,
  showsObjects,
  subjectKey,
  unknownConsumersKey,
} from "./subscription.ts";
import type { WatchScope } from "./watch-scope.ts";
import type { ListedObject } from "./watcher.ts";

type Store = Pick<Reflector<CachedObject>, "get" | "keys" | "revision">;

export class CollectionIndex {
  readonly #keys = new SetsByKey<string, string>();
  /** The collections that were listed since their objects last changed. */
  readonly #members = new Map<string, readonly ListedObject[]>();
  /** The revision of the store that is indexed. */
  #revision = -1;

  /** Applies a change that the store has just applied. After a missed change, the whole index is rebuilt at its next use. */
  changed({ revision }: Store, key: string, after: CachedObject | undefined, before: CachedObject | undefined): void {
    if (this.#revision !== revision - 1) return;
    this.#revision = revision;
    if (before !== undefined) this.#remove(key, before);
    if (after !== undefined) this.#add(key, after);
  }

  keysOf(collection: string, store: Store): Iterable<string> {
    if (this.#revision !== store.revision) {
      this.#keys.clear();
      this.#members.clear();
      for (const key of store.keys()) {
        const seen = store.get(key);
        if (seen !== undefined) this.#add(key, seen);
      }
      this.#revision = store.revision;
    }
    return this.#keys.get(collection) ?? [];
  }

  /** The same array until one of the objects changes. `namespace` is that of the collection. */
  membersOf(collection: string, namespace: string | undefined, store: Store): readonly ListedObject[] {
    const keys = this.keysOf(collection, store);
    const known = this.#members.get(collection);
    if (known !== undefined) return known;
    const members = membersAt(keys, namespace, store);
    this.#members.set(collection, members);
    return members;
  }

  #add(key: string, seen: CachedObject): void {
    for (const collection of collectionsOf(key, seen)) {
      this.#members.delete(collection);
      this.#keys.add(collection, key);
    }
  }

  #remove(key: string, seen: CachedObject): void {
    for (const collection of collectionsOf(key, seen)) {
      this.#members.delete(collection);
      this.#keys.remove(collection, key);
    }
  }
}

/** Those of the objects that exist. */
export function membersAt(
  keys: Iterable<string>,
  namespace: string | undefined,
  store: Pick<Store, "get">,
): ListedObject[] {
  const members: ListedObject[] = [];
  for (const key of keys) {
    const version = store.get(key);
    if (version !== undefined)
      members.push({ ...(namespace !== undefined && { namespace }), name: nameIn(key), version });
  }
  return members;
}

/**
 * The estimated bytes for one namespace: fields of 10,000 usual claims take half of it, 10,000 usual classes an eighth, and 15,000 usual
 * workloads take all.
 */
const MAX_COST = 32 * 1024 ** 2;
/** The estimated bytes of a value beyond its text. */
const PER_VALUE = 32;

/**
 * Objects beyond the limit are kept without the fields of subscriptions, SecretProviderClasses and workloads.
 * The estimated bytes in all streams, by the namespace that the streams count for and that of the objects.
 */
export class KeptTotals extends Counts {
  readonly #most: number;

  constructor(most = MAX_COST) {
    super();
    this.#most = most;
  }

  roomFor(key: string): number {
    return this.#most - this.get(key);
  }
}

/** What one stream keeps. */
export class KeptFields {
  readonly #totals: KeptTotals;
  readonly #tenant: string;
  readonly #countsWorkloads: boolean;
  readonly #costs = new Counts();
  readonly #costOf = new WeakMap<CachedObject, number>();
  /** The objects that count. */
  #counted = new WeakSet<CachedObject>();
  #hasEnded = false;

  /** `tenant` is the namespace that the stream counts for. Without `countsWorkloads`, workloads are kept without a limit. */
  constructor(totals: KeptTotals, tenant = "", countsWorkloads = true) {
    this.#totals = totals;
    this.#tenant = tenant;
    this.#countsWorkloads = countsWorkloads;
  }

  /** The object in place of `before`, without its fields or facts if they are too large. The namespace is that of its key. */
  keep(key: string, after: CachedObject, before: CachedObject | undefined): CachedObject {
    const { fields, synced, workload, ...rest } = after;
    const part = fields ?? synced ?? (this.#countsWorkloads ? workload : undefined);
    if (part === undefined || this.#hasEnded) return after;
    this.gone(key, before);
    const namespace = namespaceIn(key);
    const room = this.#totals.roomFor(this.#keyOf(namespace));
    const { characters, elements } = sizeOf(part);
    const cost = characters + elements * PER_VALUE;
    if (cost > room) return { ...rest, ...(fields && { fields: {} }), ...(synced && { synced: [] }), isTooLarge: true };
    this.#costOf.set(after, cost);
    this.#count(namespace, after);
    return after;
  }

  gone(key: string, before: CachedObject | undefined): void {
    if (before === undefined || !this.#counted.delete(before)) return;
    this.#add(namespaceIn(key), -(this.#costOf.get(before) ?? 0));
  }

  /** Counts these objects alone: some of a list that failed are not kept. */
  recount(keys: Iterable<string>, get: (key: string) => CachedObject | undefined): void {
    this.#clear();
    for (const key of keys) {
      const object = get(key);
      if (object !== undefined && this.#costOf.has(object)) this.#count(namespaceIn(key), object);
    }
  }

  /** The stream is closed. */
  end(): void {
    this.#hasEnded = true;
    this.#clear();
  }

  #clear(): void {
    for (const [namespace, cost] of this.#costs) this.#totals.add(this.#keyOf(namespace), -cost);
    this.#costs.clear();
    this.#counted = new WeakSet();
  }

  #count(namespace: string, object: CachedObject): void {
    this.#counted.add(object);
    this.#add(namespace, this.#costOf.get(object) ?? 0);
  }

  #add(namespace: string, cost: number): void {
    this.#totals.add(this.#keyOf(namespace), cost);
    this.#costs.add(namespace, cost);
  }

  #keyOf(namespace: string): string {
    return `${this.#tenant}|${namespace}`;
  }
}

const namespaceIn = (key: string) => key.slice(0, Math.max(0, key.indexOf("/")));

export interface Stream {
  key: string;
  resource: Resource;
  watchScope: WatchScope;
  /** The namespace that the stream counts for; undefined for a stream that all share. */
  tenant: string | undefined;
  /** The paths that its bindings name for workloads of the kind, if they are not the usual ones. */
  ownPaths: string | undefined;
  /** The reason why it is not open. Set while it waits for a slot, until it has received something. */
  held: ApiError | undefined;
  wasRefused: boolean;
  wasSynced: boolean;
  /** Undefined while it waits for a slot, or for its turn. */
  reflector: Reflector<CachedObject> | undefined;
  /** By subject. A binding may subscribe twice: by its own identity and by its account. */
  subscribers: SetsByKey<string, Subscriber>;
  /** Those who want the consumers of an object in a namespace, by the subject of workloads that may consume any. */
  consumers: SetsByKey<string, Subscriber>;
  index: CollectionIndex;
  kept: KeptFields;
}

export interface Subscriber {
  /** The key that depends on it. A prefix keeps the keys of different controllers apart. */
  dependent: string;
  notify(cause: "change" | "resync", name?: string): void;
  dependency: Subscription;
  /** Whether a name matches the collection. */
  isNamed: NameMatcher;
  keep: Projection;
  /** Undefined while its stream is being decided, and when no stream may carry it. */
  streamKey: string | undefined;
  /** The reason why no stream carries it. */
  refused: ApiError | undefined;
  /** The last stream that carried it was in sync. */
  wasSynced: boolean;
  /** It has a stream of its own, of which a binding may have a limited number. */
  isOneByOne: boolean;
}

export function subscriberOf(
  dependent: string,
  dependency: Subscription,
  notify: Subscriber["notify"],
  view?: ReloaderView,
  mostReferences?: number,
): Subscriber {
  const { names, exceptNames } = isCollection(dependency) ? dependency : { names: undefined };
  const isNamed = nameMatcher(names, exceptNames);
  const keep = projectionFor(dependency, view, mostReferences);
  const none = { streamKey: undefined, refused: undefined, wasSynced: false, isOneByOne: false };
  return { dependent, notify, dependency, isNamed, keep, ...none };
}

/** The state that readers of a stream see. */
export function phaseOf({ held, reflector }: Stream): ReflectorState {
  if (held !== undefined) return { phase: "failed", error: held };
  return reflector?.state ?? { phase: "pending" };
}

/** The state of a stream, for metrics and readiness. */
export function stateOf({ reflector, resource, key, subscribers }: Stream): StreamState {
  const more = { stream: key, subscribers: subscribers.size };
  if (reflector !== undefined) return { ...reflector.stateOf(resource), ...more };
  const name = resourceName(resource);
  return { resource: name, phase: "waiting", refused: true, quietSeconds: 0, interruptedSeconds: 0, ...more };
}

/**
 * The namespace that a stream counts for: the namespace of its account, or of the account whose objects the controller watches. Streams of
 * the controller that serve all accounts count for no namespace, unless only one account needs that exact stream.
 */
export function tenantOf(watchScope: WatchScope, dependency: Subscription): string | undefined {
  if (dependency.identity === CONTROLLER) return watchScope === "name" ? namespaceOf(dependency) : undefined;
  return watchScope === "shared" && isUsual(dependency) ? undefined : homeOf(dependency.identity);
}

/** Whether the common stream of the kind serves it: it has no labels and no paths of its own. */
function isUsual(dependency: Subscription): boolean {
  if (isCollection(dependency) && dependency.labels !== "") return false;
  return ownPathsOf(dependency) === undefined;
}

/** The paths that a binding names for workloads of a kind, as a key; undefined for the usual ones. */
export function ownPathsOf(dependency: Subscription): string | undefined {
  const { workload } = dependency;
  if (workload === undefined) return undefined;
  const { kind } = resourceOf(dependency);
  const known = knownWorkload(kind);
  const isKnown = known !== undefined && isDeepStrictEqual(workload, { template: known.template });
  return isKnown ? undefined : projectionKey(dependency);
}

/**
 * Whether the controller's own stream serves another account. The API server does not end that stream when the account loses its
 * permission.
 */
export function isLent(watchScope: WatchScope, dependency: Subscription): boolean {
  return watchScope.startsWith("shared") && showsObjects(dependency) && dependency.identity !== CONTROLLER;
}

/** Adds a subscriber to those that a stream calls. */
export function join({ subscribers, consumers }: Stream, subscriber: Subscriber): void {
  subscribers.add(subjectKey(subscriber.dependency), subscriber);
  const place = consumedAt(subscriber.dependency);
  if (place !== undefined) consumers.add(place, subscriber);
}

export function leave({ subscribers, consumers }: Stream, subscriber: Subscriber): void {
  subscribers.remove(subjectKey(subscriber.dependency), subscriber);
  const place = consumedAt(subscriber.dependency);
  if (place !== undefined) consumers.remove(place, subscriber);
}

/** The subject of the workloads that may be consumers of what a subscriber names. */
const consumedAt = (dependency: Subscription): string | undefined =>
  isCollection(dependency) && dependency.consumersOf !== undefined
    ? unknownConsumersKey(`${dependency.namespace}/`)
    : undefined;

export function subscribersOf({ subscribers }: Stream): Subscriber[] {
  return [...subscribers.values()].flatMap((each) => [...each]);
}

/** The limit for comparing the name in an event with the patterns of all subscribers: some 10 ms. */
const MAX_EFFORT = 1_000_000;

/** Notifies each subscriber once if the old or new state of an object concerns it, or may concern it. */
export function notifyOf(
  stream: Stream,
  key: string,
  after: CachedObject | undefined,
  before: CachedObject | undefined,
  news: "progress" | "change",
): void {
  const name = nameIn(key);
  const collections = [after, before].flatMap((seen) => (seen === undefined ? [] : collectionsOf(key, seen)));
  const concerned: Subscriber[] = [];
  const effort = { left: MAX_EFFORT };
  for (const subject of new Set([key, ...collections]))
    for (const each of [stream.subscribers.get(subject), stream.consumers.get(subject)])
      for (const subscriber of each ?? []) {
        const { dependency, isNamed } = subscriber;
        const isRelevant = !isCollection(dependency) || !dependency.choice || isChoice(after, before);
        if (isRelevant && (effort.left < 0 || isNamed(name, effort))) concerned.push(subscriber);
      }
  notifyAll(concerned, news === "progress" ? "resync" : "change", name);
}

/** Calls each key once, even if several of its subscriptions are concerned. `name` is the changed object, if there is one. */
export function notifyAll(subscribers: readonly Subscriber[], cause: "change" | "resync", name?: string): void {
  const notified = new Set<string>();
  for (const { dependent, notify } of subscribers) {
    if (notified.has(dependent)) continue;
    notified.add(dependent);
    notify(cause, name);
  }
}
