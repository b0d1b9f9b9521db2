/**
 * Which objects each binding depends on comes in, and the key of a binding goes out whenever one of them may have
 * changed. RBAC has no verb for metadata alone, so a watch is a read: a stream belongs to the identity that may have
 * it, and is shared by the whole cluster only for kinds that the platform opened to the controller.
 */
import { type Effort, type NameMatcher, nameMatcher } from "../apimachinery/glob.ts";
import type { Resource } from "../apimachinery/objects.ts";
import { isImpersonation } from "../kube/access-error.ts";
import type { Client } from "../kube/client.ts";
import { CONTROLLER, type Identity } from "../kube/identity.ts";
import { ListWatch, type Scope, type WatchTransport } from "../kube/list-watch.ts";
import {
  type CachedObject,
  classifyChange,
  collectionsOf,
  isChoice,
  nameIn,
  type Projection,
  projectionFor,
} from "./cached-object.ts";
import { CollectionIndex } from "./collection-index.ts";
import { Reflector, type RestartReason, type StreamState } from "./reflector.ts";
import {
  type CollectionSubscription,
  isCollection,
  isTelling,
  type ObjectSubscription,
  resourceKey,
  type Subscription,
  subjectKey,
  subscriptionKey,
  workloadKey,
} from "./subscription.ts";
import { groupKey, listWatchScope, narrowerScope, type WatchScope, WatchScopes } from "./watch-scope.ts";
import type { ChangeHandler, ListedObject, Watcher } from "./watcher.ts";

/** Called whenever a watch ended and is started again. */
export type RestartHandler = (resource: Resource, reason: RestartReason) => void;

interface Informer {
  resource: Resource;
  watchScope: WatchScope;
  wasRefused: boolean;
  reflector: Reflector<CachedObject>;
  /** By subject. A binding may subscribe twice, as itself and through its account. */
  subscribers: Map<string, Set<Subscriber>>;
  index: CollectionIndex;
}

interface Subscriber {
  /** The key that depends on it, prefixed so that keys of different controllers never collide. */
  dependent: string;
  notify(cause: "change" | "resync"): void;
  dependency: Subscription;
  /** Whether a name is of a collection. */
  isNamed: NameMatcher;
  keep: Projection;
  /** Undefined while it is being found out which stream may carry it. */
  streamKey: string | undefined;
}

/** Permissions are reviewed again this long after a refused stream recovers, and when a stream ends this long after the last review. */
const JUST_NOW_MS = 1_000;
const A_WHILE_MS = 60_000;

export class Informers {
  readonly #transport: WatchTransport;
  readonly #restarted: RestartHandler;
  readonly #streams = new Map<string, Informer>();
  readonly #subscriptions = new Map<string, Map<string, Subscriber>>();
  readonly #scopes: WatchScopes;
  #watchers = 0;

  /** Of the whole cluster, unless all that is watched is in one namespace. */
  constructor(transport: WatchTransport, client: Pick<Client, "may">, restarted: RestartHandler, isNamespaced = false) {
    this.#transport = transport;
    this.#scopes = new WatchScopes(client, isNamespaced);
    this.#restarted = restarted;
  }

  /** How each watch is. */
  get states(): StreamState[] {
    return [...this.#streams.values()].map(({ reflector, resource }) => reflector.stateOf(resource));
  }

  /** For one controller, whose keys are its own. */
  watcher(changed: ChangeHandler): Watcher {
    const number = this.#watchers++;
    const idOf = (key: string) => `${number}|${key}`;
    return {
      subscribe: (key, subscriptions) => this.#replace(idOf(key), subscriptions, (cause) => changed(key, cause)),
      get: (key, subscription) => this.#get(idOf(key), subscription),
      list: (key, collection, effort) => this.#list(idOf(key), collection, effort),
    };
  }

  #replace(dependent: string, subscriptions: readonly Subscription[], notify: Subscriber["notify"]): void {
    const before = this.#subscriptions.get(dependent) ?? new Map<string, Subscriber>();
    const after = new Map<string, Subscriber>();
    for (const dependency of subscriptions) {
      const key = subscriptionKey(dependency);
      const known = before.get(key) ?? after.get(key);
      after.set(key, known ?? subscriberOf(dependent, dependency, notify));
    }
    this.#subscriptions.set(dependent, after);
    for (const [key, subscriber] of after) {
      if (before.has(key)) continue;
      // A new subscriber that would see which objects exist must have that permission now.
      if (isTelling(subscriber.dependency)) this.#scopes.reconsider(subscriber.dependency, A_WHILE_MS);
      void this.#subscribe(subscriber);
    }
    for (const [key, subscriber] of before) if (!after.has(key)) this.#unsubscribe(subscriber);
    if (after.size === 0) this.#subscriptions.delete(dependent);
  }

  #get(dependent: string, subscription: ObjectSubscription): ReturnType<Watcher["get"]> {
    const stream = this.#streamOf(this.#subscriptions.get(dependent)?.get(subscriptionKey(subscription)));
    if (stream === undefined) return { phase: "pending" };
    const version = stream.reflector.get(subjectKey(subscription));
    return { ...stream.reflector.state, ...(version && { version }) };
  }

  #list(dependent: string, collection: CollectionSubscription, effort?: Effort): ReturnType<Watcher["list"]> {
    const subscriber = this.#subscriptions.get(dependent)?.get(subscriptionKey(collection));
    const stream = this.#streamOf(subscriber);
    if (subscriber === undefined || stream === undefined) return { phase: "pending", members: [] };
    const { namespace } = collection;
    const members: ListedObject[] = [];
    for (const key of stream.index.keysOf(subjectKey(collection), stream.reflector)) {
      const name = nameIn(key);
      const version = stream.reflector.get(key);
      if (effort !== undefined && effort.left < 0) break;
      if (version === undefined || !subscriber.isNamed(name, effort)) continue;
      members.push({ ...(namespace !== undefined && { namespace }), name, version });
    }
    return { ...stream.reflector.state, members };
  }

  async stop(): Promise<void> {
    this.#scopes.stop();
    this.#subscriptions.clear();
    await Promise.all([...this.#streams.values()].map((stream) => stream.reflector.stop()));
    this.#streams.clear();
  }

  #streamOf(subscription: Subscriber | undefined): Informer | undefined {
    return subscription?.streamKey === undefined ? undefined : this.#streams.get(subscription.streamKey);
  }

  async #subscribe(subscriber: Subscriber): Promise<void> {
    const { dependent, dependency, keep } = subscriber;
    const watchScope = await this.#scopes.of(dependency);
    if (this.#subscriptions.get(dependent)?.get(subscriptionKey(dependency)) !== subscriber) return;
    const identity = watchScope.startsWith("shared") ? CONTROLLER : dependency.identity;
    const scope = listWatchScope(watchScope, dependency);
    const { namespace = "", name = "", labels = "" } = scope;
    const place = [identity, resourceKey(scope.resource), namespace, name, labels, scope.form];
    const streamKey = [...place, workloadKey(dependency)].join("|");
    if (subscriber.streamKey === streamKey) return;
    this.#unsubscribe(subscriber);
    subscriber.streamKey = streamKey;
    const stream = this.#streams.get(streamKey) ?? this.#open(streamKey, identity, scope, watchScope, keep);
    const subject = subjectKey(dependency);
    const subscribers = stream.subscribers.get(subject) ?? new Set();
    stream.subscribers.set(subject, subscribers.add(subscriber));
    if (stream.reflector.state.phase !== "pending") subscriber.notify("resync");
  }

  #unsubscribe(subscriber: Subscriber): void {
    const { streamKey, dependency } = subscriber;
    const stream = this.#streamOf(subscriber);
    subscriber.streamKey = undefined;
    if (streamKey === undefined || stream === undefined) return;
    const subject = subjectKey(dependency);
    stream.subscribers.get(subject)?.delete(subscriber);
    if (stream.subscribers.get(subject)?.size === 0) stream.subscribers.delete(subject);
    if (stream.subscribers.size > 0) return;
    this.#streams.delete(streamKey);
    this.#scopes.forget(dependency);
    void stream.reflector.stop();
  }

  #open(streamKey: string, identity: Identity, scope: Scope, watchScope: WatchScope, keep: Projection): Informer {
    const { resource } = scope;
    const stream: Informer = {
      resource,
      watchScope,
      wasRefused: false,
      subscribers: new Map(),
      index: new CollectionIndex(),
      reflector: new Reflector<CachedObject>(new ListWatch(this.#transport, identity, scope), {
        keep,
        changed: (key, after, before) => {
          stream.index.changed(stream.reflector, key, after, before);
          const news = classifyChange(after, before);
          if (news !== "none") this.#changed(stream, key, after, before, news);
        },
        stateChanged: (state) => {
          if (state.phase === "failed" && state.error.status === 403) {
            stream.wasRefused = true;
            // Who may not be impersonated may not be for a narrower stream either.
            if (!isImpersonation(state.error, { identity, ref: scope })) this.#narrow(stream);
          } else if (state.phase === "synced" && stream.wasRefused) {
            stream.wasRefused = false;
            // Many streams recover at about the same time: the first review serves all that recovered before it.
            setTimeout(() => this.#askAgain(stream, JUST_NOW_MS), JUST_NOW_MS).unref();
          }
          notifyAll(subscribersOf(stream), "resync");
        },
        restarted: (reason) => {
          this.#restarted(resource, reason);
          if (reason === "ended") this.#askAgain(stream, A_WHILE_MS);
        },
      }),
    };
    this.#streams.set(streamKey, stream);
    stream.reflector.start();
    return stream;
  }

  /** Notifies each subscriber that the former or the new state of an object concerns, once. */
  #changed(
    stream: Informer,
    key: string,
    after: CachedObject | undefined,
    before: CachedObject | undefined,
    news: "progress" | "change",
  ): void {
    const name = nameIn(key);
    const collections = [after, before].flatMap((seen) => (seen === undefined ? [] : collectionsOf(key, seen)));
    const concerned: Subscriber[] = [];
    for (const subject of new Set([key, ...collections]))
      for (const subscriber of stream.subscribers.get(subject) ?? []) {
        const { dependency, isNamed } = subscriber;
        const isRelevant = !isCollection(dependency) || !dependency.choice || isChoice(after, before);
        if (isRelevant && isNamed(name)) concerned.push(subscriber);
      }
    notifyAll(concerned, news === "progress" ? "resync" : "change");
  }

  /** A right that a review promised, or that was there, is not: what is on this stream moves to the next narrower scope if there is one. */
  #narrow(stream: Informer): void {
    for (const subscriber of subscribersOf(stream)) {
      if (narrowerScope(stream.watchScope, subscriber.dependency) === undefined) continue;
      this.#unsubscribe(subscriber);
      this.#scopes.refused(subscriber.dependency, stream.watchScope);
      void this.#subscribe(subscriber);
    }
  }

  /**
   * Reviews permissions again that were reviewed longer than `sinceMs` ago. A wider stream replaces a narrow one if it is allowed now,
   * and an account that may no longer list a kind leaves the controller's own stream.
   */
  #askAgain(stream: Informer, sinceMs: number): void {
    const { watchScope } = stream;
    const groups = new Set<string>();
    for (const { dependency } of subscribersOf(stream)) {
      const isConcerned =
        watchScope === "name" || (watchScope === "namespace" && dependency.wide) || isLent(watchScope, dependency);
      if (isConcerned && this.#scopes.reconsider(dependency, sinceMs)) groups.add(groupKey(dependency));
    }
    if (groups.size === 0) return;
    // The answer is for all of the group: those on other streams may never have been refused, and would not ask by themselves.
    for (const subscribers of this.#subscriptions.values())
      for (const subscriber of subscribers.values())
        if (groups.has(groupKey(subscriber.dependency))) void this.#subscribe(subscriber);
  }
}

function subscriberOf(dependent: string, dependency: Subscription, notify: Subscriber["notify"]): Subscriber {
  const isNamed = nameMatcher(isCollection(dependency) ? dependency.names : undefined);
  return { dependent, notify, dependency, isNamed, keep: projectionFor(dependency), streamKey: undefined };
}

/** Whether the controller's own stream serves another account. The API server does not end it when that account loses its permission. */
function isLent(watchScope: WatchScope, dependency: Subscription): boolean {
  return watchScope.startsWith("shared") && isTelling(dependency) && dependency.identity !== CONTROLLER;
}

function subscribersOf({ subscribers }: Informer): Subscriber[] {
  return [...subscribers.values()].flatMap((each) => [...each]);
}

/** Each key once, however many of its subscriptions are concerned. */
function notifyAll(subscribers: readonly Subscriber[], cause: "change" | "resync"): void {
  const notified = new Set<string>();
  for (const { dependent, notify } of subscribers) {
    if (notified.has(dependent)) continue;
    notified.add(dependent);
    notify(cause);
  }
}
