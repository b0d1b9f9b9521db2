/**
 * Watches the objects that bindings depend on, and reports the key of a binding when one of them may have changed. RBAC has no verb for
 * metadata alone, so a watch is a read: each stream uses an identity that has the permission. The whole cluster shares a stream only of
 * kinds that the platform opted in.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ReloaderView } from "../api/reloader.ts";
import { type Effort, isGlob } from "../apimachinery/glob.ts";
import { Counts } from "../apimachinery/maps.ts";
import { isImpersonation } from "../kube/access-error.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER, homeOf } from "../kube/identity.ts";
import type { WatchTransport } from "../kube/list-watch.ts";
import { finish } from "../workqueue/cpu-scheduler.ts";
import { type AccessPlace, AccountRules } from "./account-rules.ts";
import { nameIn } from "./cached-object.ts";
import { ChangedObjects } from "./changed-objects.ts";
import type { ReflectorState, StreamState } from "./reflector.ts";
import { RefusedSubscriptions } from "./refused-subscriptions.ts";
import {
  isLent,
  join,
  leave,
  membersAt,
  ownPathsOf,
  phaseOf,
  type Stream,
  type Subscriber,
  subscriberOf,
  subscribersOf,
  tenantOf,
} from "./stream.ts";
import { type RestartHandler, type RunFor, type StreamEvents, Streams } from "./streams.ts";
import {
  type CollectionSubscription,
  isCollection,
  type ObjectSubscription,
  type Subscription,
  showsObjects,
  streamKeyOf,
  subjectKey,
  subscriptionKey,
  unknownConsumersKey,
} from "./subscription.ts";
import { groupKey, listWatchScope, narrowerScope, placeOf, type WatchScope, WatchScopes } from "./watch-scope.ts";
import type { ChangeHandler, ListedObject, Watcher } from "./watcher.ts";

/** Counts what each name holds, up to a limit: the streams of a dependent, or the subscriptions of a namespace. */
class Allowance {
  readonly #most: number;
  readonly #hasRoom: (name: string) => void;
  readonly #counts = new Counts();
  /** The names that are about to be called. */
  readonly #called = new Set<string>();

  /** `hasRoom` is called soon after a full name released something. */
  constructor(most: number, hasRoom: (name: string) => void) {
    this.#most = most;
    this.#hasRoom = hasRoom;
  }

  /** Takes one if there is room. Returns whether it did. */
  take(name: string): boolean {
    if (this.#counts.get(name) >= this.#most) return false;
    this.#counts.add(name, 1);
    return true;
  }

  release(name: string): void {
    // If it was not full, nothing waits for room.
    if (this.#counts.add(name, -1) < this.#most - 1 || this.#called.has(name)) return;
    this.#called.add(name);
    queueMicrotask(() => {
      this.#called.delete(name);
      this.#hasRoom(name);
    });
  }
}

/**
 * All names in its namespace that the stream of a workload shows. An account has a stream with other names than that of the workload
 * only if it may list the kind there.
 */
function* namesBeside(stream: Stream | undefined, { ref, workload }: ObjectSubscription): Generator<string, void> {
  if (stream?.reflector === undefined || workload === undefined) return;
  for (const key of stream.index.keysOf(`${ref.namespace}/`, stream.reflector)) yield nameIn(key);
}

/** A dependent with more subscriptions is called later, by this delay for each. Checking one takes some microseconds. */
const FEW = 64;
const PACE_MS = 5;
const MAX_PACE_MS = 5_000;

/** Merges calls of dependents with many subscriptions: each call checks all of them, and streams open and close one after the other. */
class PacedCalls {
  /** The scheduled calls, by dependent. */
  readonly #calls = new Map<string, NodeJS.Timeout>();

  /** Calls `notify`: at once, or once for all calls during the delay. */
  call(dependent: string, subscriptions: number, notify: () => void): void {
    if (subscriptions <= FEW) notify();
    if (subscriptions <= FEW || this.#calls.has(dependent)) return;
    const ms = Math.min(subscriptions * PACE_MS, MAX_PACE_MS);
    const call = setTimeout(() => {
      this.#calls.delete(dependent);
      notify();
    }, ms);
    this.#calls.set(dependent, call.unref());
  }

  stop(): void {
    for (const call of this.#calls.values()) clearTimeout(call);
    this.#calls.clear();
  }
}

/** How soon permissions are reviewed again after a refused stream recovers, and when a stream ends this long after the last review. */
const JUST_NOW_MS = 1_000;
const A_WHILE_MS = 60_000;
/** A review that takes a stream away is repeated after this time: an API server that has just started has not yet read all roles. */
const CONFIRM_MS = 2_000;
/** The most objects of one binding that are watched by a stream each. */
const ONE_BY_ONE = 128;
const TOO_MANY_NAMES = new ApiError("WATCH", 0, "TooManyNames");
/** The most subscriptions of all keys of one namespace. Each takes about 1 KB. */
const MAX_SUBSCRIPTIONS = 100_000;
const TOO_MANY_SUBSCRIPTIONS = new ApiError("WATCH", 0, "TooManySubscriptions");

/** What subscribes: a key of a controller. */
interface Dependent {
  id: string;
  /** The namespace whose subscriptions are limited. */
  tenant: string | undefined;
  notify: Subscriber["notify"];
}

interface InformerOptions {
  /** Watch only one namespace. */
  isNamespaced?: boolean;
  view?: ReloaderView;
  /** How many references of each workload are kept. */
  mostReferences?: number;
  /** Does the work for events of a namespace. Without it, all is done at once. */
  run?: RunFor;
  /** An object was not read, because of an error in Inlay. */
  unread?: StreamEvents["unread"];
  /** The most subscriptions of all keys of one namespace. */
  mostSubscriptions?: number;
}

export class Informers {
  readonly #streams: Streams;
  readonly #subscriptions = new Map<string, Map<string, Subscriber>>();
  readonly #scopes: WatchScopes;
  readonly #refused: RefusedSubscriptions<Subscriber>;
  /** The dependents that lack subscriptions because their namespace has too many. */
  readonly #full = new Map<string, Dependent>();
  readonly #room: Allowance;
  readonly #oneByOne = new Allowance(ONE_BY_ONE, (dependent) => {
    for (const subscriber of this.#subscriptions.get(dependent)?.values() ?? [])
      if (subscriber.refused === TOO_MANY_NAMES) void this.#subscribe(subscriber);
  });
  readonly #calls = new PacedCalls();
  readonly #options: InformerOptions;
  readonly changed: ChangedObjects;
  #watchers = 0;

  constructor(
    transport: WatchTransport,
    client: Pick<Client, "may" | "rules">,
    restarted: RestartHandler,
    options: InformerOptions = {},
  ) {
    const { isNamespaced = false, run, mostSubscriptions = MAX_SUBSCRIPTIONS } = options;
    this.#options = options;
    const reviews = new AccountRules(client);
    this.changed = new ChangedObjects(reviews);
    this.#scopes = new WatchScopes(client, reviews, isNamespaced);
    this.#room = new Allowance(mostSubscriptions, (tenant) => {
      for (const each of this.#full.values()) if (each.tenant === tenant) each.notify("resync");
    });
    this.#streams = new Streams(
      transport,
      restarted,
      this.changed,
      {
        refused: (stream, error) => this.#narrow(stream, error),
        // Many streams recover at about the same time. The first review serves all that recovered before it.
        recovered: (stream) => setTimeout(() => this.#askAgain(stream, JUST_NOW_MS), JUST_NOW_MS).unref(),
        opened: (stream) => {
          for (const subscriber of subscribersOf(stream)) this.#refused.delete(subscriber);
        },
        ended: (stream) => this.#askAgain(stream, A_WHILE_MS),
        unread: (resource, object, error) => options.unread?.(resource, object, error),
      },
      run,
    );
    this.#refused = new RefusedSubscriptions(reviews, (place) => this.#rulesChanged(place));
  }

  /** The state of each watch. */
  get states(): StreamState[] {
    return this.#streams.states;
  }

  /**
   * Returns the watcher of one controller, which has its own keys. `namespaceOf` returns the namespace of a key whose subscriptions are
   * limited.
   */
  watcher(changed: ChangeHandler, namespaceOf?: (key: string) => string): Watcher {
    const number = this.#watchers++;
    const idOf = (key: string) => `${number}|${key}`;
    const subscribing: Watcher["subscribing"] = (key, subscriptions) => {
      const id = idOf(key);
      const notify: Subscriber["notify"] = (cause, name) => {
        if (cause === "change") changed(key, cause, name);
        else this.#calls.call(id, this.#subscriptions.get(id)?.size ?? 0, () => changed(key, cause));
      };
      return this.#replace({ id, tenant: namespaceOf?.(key), notify }, subscriptions);
    };
    return {
      subscribe: (key, subscriptions) => finish(subscribing(key, subscriptions)),
      subscribing,
      get: (key, subscription, name) => this.#get(idOf(key), subscription, name),
      namesBeside: (key, workload) => namesBeside(this.#carrierOf(idOf(key), workload).stream, workload),
      list: (key, collection, effort) => this.#list(idOf(key), collection, effort),
    };
  }

  *#replace(dependent: Dependent, subscriptions: readonly Subscription[]): Generator<void, void> {
    const { id, tenant, notify } = dependent;
    const current = this.#subscriptions.get(id) ?? new Map<string, Subscriber>();
    const wanted = new Set<string>();
    const added = new Map<string, Subscriber>();
    for (const dependency of subscriptions) {
      yield;
      const key = subscriptionKey(dependency);
      wanted.add(key);
      if (current.has(key) || added.has(key)) continue;
      added.set(key, subscriberOf(id, dependency, notify, this.#options.view, this.#options.mostReferences));
      // Before others leave, so that an answer about the permissions of both is kept.
      this.#scopes.join(dependency);
    }
    for (const [key, subscriber] of current) {
      if (wanted.has(key)) continue;
      yield;
      current.delete(key);
      this.#unsubscribe(subscriber);
      this.#scopes.leave(subscriber.dependency);
      if (tenant !== undefined) this.#room.release(tenant);
    }
    this.#full.delete(id);
    this.#subscriptions.set(id, current);
    for (const [key, subscriber] of added) {
      yield;
      const { dependency } = subscriber;
      if (tenant !== undefined && !this.#room.take(tenant)) {
        this.#full.set(id, dependent);
        this.#scopes.leave(dependency);
        continue;
      }
      current.set(key, subscriber);
      // A new subscriber that would see which objects exist must have the permission now.
      if (showsObjects(dependency)) this.#scopes.reconsider(dependency, A_WHILE_MS);
      void this.#subscribe(subscriber);
    }
    if (current.size === 0) this.#subscriptions.delete(id);
  }

  #get(dependent: string, subscription: Subscription, name = ""): ReturnType<Watcher["get"]> {
    const { state, stream, subscriber } = this.#carrierOf(dependent, subscription);
    const isOf = !isCollection(subscription) || subscriber?.isNamed(name);
    const version = isOf ? stream?.reflector?.get(`${subjectKey(subscription)}${name}`) : undefined;
    return { ...state, ...(version && { version }) };
  }

  #list(dependent: string, collection: CollectionSubscription, effort?: Effort): ReturnType<Watcher["list"]> {
    const { state, stream, subscriber } = this.#carrierOf(dependent, collection);
    if (subscriber === undefined || stream?.reflector === undefined) return { ...state, members: [] };
    const { names, exceptNames, namespace } = collection;
    const { index, reflector } = stream;
    const named = keysByName(collection);
    const chosen =
      named === undefined
        ? index.membersOf(subjectKey(collection), namespace, reflector)
        : membersAt(named, namespace, reflector);
    // Whether these read the source is unknown.
    const unknown =
      collection.consumersOf === undefined
        ? []
        : index.membersOf(unknownConsumersKey(`${namespace}/`), namespace, reflector);
    const all = unknown.length === 0 ? chosen : [...chosen, ...unknown];
    if (names === undefined && exceptNames === undefined) return { ...state, members: all };
    const members: ListedObject[] = [];
    for (const each of all) {
      if (effort !== undefined && effort.left < 0) break;
      if (subscriber.isNamed(each.name, effort)) members.push(each);
    }
    return { ...state, members };
  }

  /** The stream that carries a subscription, unless the stream was refused, and the state of the stream. */
  #carrierOf(dependent: string, subscription: Subscription) {
    const subscriber = this.#subscriptions.get(dependent)?.get(subscriptionKey(subscription));
    const stream = subscriber?.refused === undefined ? this.#streamOf(subscriber) : undefined;
    let state: ReflectorState = stream === undefined ? { phase: "pending" } : phaseOf(stream);
    const refused =
      subscriber === undefined && this.#full.has(dependent) ? TOO_MANY_SUBSCRIPTIONS : subscriber?.refused;
    if (refused !== undefined) state = { phase: "failed", error: refused };
    return { state, stream, subscriber };
  }

  async stop(): Promise<void> {
    this.#scopes.stop();
    this.#refused.stop();
    this.#subscriptions.clear();
    this.#full.clear();
    this.#calls.stop();
    await this.#streams.stop();
  }

  #streamOf(subscription: Subscriber | undefined): Stream | undefined {
    return subscription?.streamKey === undefined ? undefined : this.#streams.get(subscription.streamKey);
  }

  async #subscribe(subscriber: Subscriber): Promise<void> {
    const { dependent, dependency, keep } = subscriber;
    const watchScope = await this.#scopeOf(subscriber);
    if (!this.#isCurrent(subscriber)) return;
    if (watchScope instanceof ApiError) return this.#refuse(subscriber, watchScope);
    const identity = watchScope.startsWith("shared") ? CONTROLLER : dependency.identity;
    const scope = listWatchScope(watchScope, dependency);
    const tenant = tenantOf(watchScope, dependency);
    const streamKey = streamKeyOf(identity, scope, dependency, tenant);
    if (subscriber.streamKey === streamKey) return;
    // Objects in namespaces that a selector matches do not count: the binding does not list them, and each needs a stream.
    const isOneByOne = watchScope === "name" && dependency.wide !== true && identity !== CONTROLLER;
    if (isOneByOne && !this.#oneByOne.take(dependent)) return this.#refuse(subscriber, TOO_MANY_NAMES);
    this.#unsubscribe(subscriber);
    subscriber.isOneByOne = isOneByOne;
    subscriber.streamKey = streamKey;
    const of = { key: streamKey, watchScope, tenant, ownPaths: ownPathsOf(dependency) };
    const stream = this.#streams.get(streamKey) ?? this.#streams.open(of, identity, scope, keep);
    join(stream, subscriber);
    if (stream.held !== undefined) this.#poll(subscriber);
    if (phaseOf(stream).phase !== "pending") subscriber.notify("resync");
  }

  #isCurrent(subscriber: Subscriber): boolean {
    return this.#subscriptions.get(subscriber.dependent)?.get(subscriptionKey(subscriber.dependency)) === subscriber;
  }

  /** Decides how wide the stream for a subscriber may be. A review that takes the stream away is repeated once. */
  async #scopeOf(subscriber: Subscriber): Promise<WatchScope | ApiError> {
    const { dependency } = subscriber;
    const scope = await this.#scopes.of(dependency);
    const wasSynced = this.#streamOf(subscriber)?.wasSynced ?? subscriber.wasSynced;
    if (!(scope instanceof ApiError && wasSynced)) return scope;
    await sleep(CONFIRM_MS, undefined, { ref: false });
    if (!this.#isCurrent(subscriber)) return scope;
    this.#scopes.reconsider(dependency, JUST_NOW_MS);
    return this.#scopes.of(dependency);
  }

  /** Leaves the subscriber without a stream until the permissions of its account change, or its binding names other objects. */
  #refuse(subscriber: Subscriber, error: ApiError): void {
    const { refused } = subscriber;
    if (refused === undefined) this.#unsubscribe(subscriber);
    subscriber.refused = error;
    subscriber.wasSynced = false;
    if (refused === undefined) this.#poll(subscriber);
    if (refused?.essence !== error.essence) subscriber.notify("resync");
  }

  /** Reviews from time to time whether the account may now have a stream, or a wider one. */
  #poll(subscriber: Subscriber): void {
    const { dependency } = subscriber;
    const place = placeOf(dependency);
    if (place !== undefined) this.#refused.add(subscriber, place, homeOf(dependency.identity) ?? place.namespace);
  }

  #unsubscribe(subscriber: Subscriber): void {
    const { streamKey, dependency, dependent } = subscriber;
    const stream = this.#streamOf(subscriber);
    if (subscriber.isOneByOne) this.#oneByOne.release(dependent);
    this.#refused.delete(subscriber);
    // Without a subscriber, no poll would renew this answer.
    if (subscriber.refused !== undefined) this.#scopes.forget(dependency);
    subscriber.isOneByOne = false;
    subscriber.refused = undefined;
    subscriber.streamKey = undefined;
    if (streamKey === undefined || stream === undefined) return;
    subscriber.wasSynced = stream.wasSynced;
    leave(stream, subscriber);
    if (stream.subscribers.size > 0) return;
    this.#scopes.forget(dependency);
    this.#streams.close(stream);
  }

  /** The permission for a stream is missing. Its subscribers move to the next narrower scope, or lose the stream. */
  #narrow(stream: Stream, error: ApiError): void {
    const { watchScope, resource } = stream;
    const moving = subscribersOf(stream).map((subscriber) => {
      const { dependency } = subscriber;
      // If the controller may not impersonate the identity, a narrower stream would fail too.
      const isOfAll = isImpersonation(error, { identity: dependency.identity, ref: { resource } });
      const narrower = isOfAll ? undefined : narrowerScope(watchScope, dependency);
      if (narrower !== undefined) this.#unsubscribe(subscriber);
      return { subscriber, most: narrower ?? watchScope };
    });
    for (const { subscriber, most } of moving) {
      this.#scopes.refused(subscriber.dependency, most);
      void this.#subscribe(subscriber);
    }
  }

  /**
   * Reviews permissions again if the last review is older than `sinceMs`. A wider stream replaces a narrow one if it is allowed now. An
   * account that may no longer list a kind leaves the controller's own stream.
   */
  #askAgain(stream: Stream, sinceMs: number): void {
    const { watchScope } = stream;
    const groups = new Set<string>();
    for (const { dependency } of subscribersOf(stream)) {
      const isConcerned =
        watchScope === "name" || (watchScope === "namespace" && dependency.wide) || isLent(watchScope, dependency);
      if (isConcerned && this.#scopes.reconsider(dependency, sinceMs)) groups.add(groupKey(dependency));
    }
    if (groups.size > 0) this.#resubscribe(groups);
  }

  /** The permissions of an account in a namespace changed, so a wider stream may carry its subscriptions, which frees slots. */
  #rulesChanged({ identity, namespace }: AccessPlace): void {
    const groups = new Set<string>();
    for (const subscribers of this.#subscriptions.values())
      for (const { dependency } of subscribers.values()) {
        if (dependency.identity !== identity || placeOf(dependency)?.namespace !== namespace) continue;
        this.#scopes.forget(dependency);
        groups.add(groupKey(dependency));
      }
    this.#resubscribe(groups);
  }

  /** One answer is for the whole group. Members on other streams may never have been refused, so they would not ask by themselves. */
  #resubscribe(groups: ReadonlySet<string>): void {
    for (const subscribers of this.#subscriptions.values())
      for (const subscriber of subscribers.values())
        if (groups.has(groupKey(subscriber.dependency))) void this.#subscribe(subscriber);
  }
}

/** The keys of the objects that a collection may have, if it names them without wildcards: there may be far more in its place. */
function keysByName(collection: CollectionSubscription): string[] | undefined {
  const { names, having, consumersOf } = collection;
  if (names === undefined || having !== undefined || consumersOf !== undefined || names.some(isGlob)) return undefined;
  return [...new Set(names)].map((name) => `${subjectKey(collection)}${name}`);
}
