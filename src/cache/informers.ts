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
import { ListWatch, type Scope } from "../kube/list-watch.ts";
import type { Transport } from "../kube/transport.ts";
import { collectionsOf, isChoice, type Keep, keepFor, nameIn, newsOf, type Seen } from "./cached-object.ts";
import { MemberIndex } from "./collection-index.ts";
import { Reflector, type ReflectorState, type RestartReason, type StreamState } from "./reflector.ts";
import {
  type Collection,
  type Dependency,
  dependencyKey,
  type Interest,
  isCollection,
  isTelling,
  resourceKey,
  subjectKey,
  workloadKey,
} from "./subscription.ts";
import { groupKey, type Rung, Rungs, rungBelow, scopeOf } from "./watch-scope.ts";

/** What goes out: `cause` tells a change from the news that a stream is in step, or is not, and from what can wait a little. */
export interface StreamsEvents {
  changed(dependent: string, cause: "change" | "resync"): void;
  restarted(resource: Resource, reason: RestartReason): void;
}

/** An object of a collection. */
export interface Member {
  namespace?: string;
  name: string;
  version: Seen;
}

interface Stream {
  resource: Resource;
  rung: Rung;
  wasRefused: boolean;
  reflector: Reflector<Seen>;
  /** Subject -> who depends on it. A binding may do so twice, as itself and through its account. */
  subscriptions: Map<string, Set<Subscription>>;
  index: MemberIndex;
}

interface Subscription {
  dependent: string;
  dependency: Dependency;
  /** Whether a name is of a collection. */
  isNamed: NameMatcher;
  keep: Keep;
  /** Undefined while it is being found out which stream may carry it. */
  streamKey: string | undefined;
}

/** Permissions are reviewed again this long after a refused stream recovers, and when a stream ends this long after the last review. */
const JUST_NOW_MS = 1_000;
const A_WHILE_MS = 60_000;

export class Streams {
  readonly #transport: Transport;
  readonly #events: StreamsEvents;
  readonly #streams = new Map<string, Stream>();
  readonly #subscriptions = new Map<string, Map<string, Subscription>>();
  readonly #rungs: Rungs;

  /** Of the whole cluster, unless all that is watched is in one namespace. */
  constructor(transport: Transport, client: Client, events: StreamsEvents, isNamespaced = false) {
    this.#transport = transport;
    this.#rungs = new Rungs(client, isNamespaced);
    this.#events = events;
  }

  /** How each stream is. */
  get states(): StreamState[] {
    return [...this.#streams.values()].map(({ reflector, resource }) => reflector.stateOf(resource));
  }

  /** Replaces what `dependent` depends on. It is called back when each is first known, and at every change after. */
  observe(dependent: string, dependencies: readonly Dependency[]): void {
    const before = this.#subscriptions.get(dependent) ?? new Map<string, Subscription>();
    const after = new Map<string, Subscription>();
    for (const dependency of dependencies) {
      const key = dependencyKey(dependency);
      const known = before.get(key) ?? after.get(key);
      after.set(key, known ?? subscriptionOf(dependent, dependency));
    }
    this.#subscriptions.set(dependent, after);
    for (const [key, subscription] of after) {
      if (before.has(key)) continue;
      // Whoever begins to look for what there is must have the right to do so now.
      if (isTelling(subscription.dependency)) this.#rungs.reconsider(subscription.dependency, A_WHILE_MS);
      void this.#subscribe(subscription);
    }
    for (const [key, subscription] of before) if (!after.has(key)) this.#unsubscribe(subscription);
    if (after.size === 0) this.#subscriptions.delete(dependent);
  }

  /** Whether the stream that carries an interest of `dependent` is in step, and with it what the object's version is. */
  look(dependent: string, interest: Interest): ReflectorState & { version?: Seen } {
    const stream = this.#streamOf(this.#subscriptions.get(dependent)?.get(dependencyKey(interest)));
    if (stream === undefined) return { phase: "pending" };
    const version = stream.reflector.get(subjectKey(interest));
    return { ...stream.reflector.state, ...(version && { version }) };
  }

  /**
   * Whether the stream that carries a collection of `dependent` is in step, and with it which objects are in it; not all of
   * them once the effort is spent.
   */
  members(dependent: string, collection: Collection, effort?: Effort): ReflectorState & { members: Member[] } {
    const subscription = this.#subscriptions.get(dependent)?.get(dependencyKey(collection));
    const stream = this.#streamOf(subscription);
    if (subscription === undefined || stream === undefined) return { phase: "pending", members: [] };
    const { namespace } = collection;
    const members: Member[] = [];
    for (const key of stream.index.keysOf(subjectKey(collection), stream.reflector)) {
      const name = nameIn(key);
      const version = stream.reflector.get(key);
      if (effort !== undefined && effort.left < 0) break;
      if (version === undefined || !subscription.isNamed(name, effort)) continue;
      members.push({ ...(namespace !== undefined && { namespace }), name, version });
    }
    return { ...stream.reflector.state, members };
  }

  async stop(): Promise<void> {
    this.#rungs.stop();
    this.#subscriptions.clear();
    await Promise.all([...this.#streams.values()].map((stream) => stream.reflector.stop()));
    this.#streams.clear();
  }

  #streamOf(subscription: Subscription | undefined): Stream | undefined {
    return subscription?.streamKey === undefined ? undefined : this.#streams.get(subscription.streamKey);
  }

  async #subscribe(subscription: Subscription): Promise<void> {
    const { dependent, dependency, keep } = subscription;
    const rung = await this.#rungs.of(dependency);
    if (this.#subscriptions.get(dependent)?.get(dependencyKey(dependency)) !== subscription) return;
    const identity = rung.startsWith("shared") ? CONTROLLER : dependency.identity;
    const scope = scopeOf(rung, dependency);
    const { namespace = "", name = "", labels = "" } = scope;
    const place = [identity, resourceKey(scope.resource), namespace, name, labels, scope.form];
    const streamKey = [...place, workloadKey(dependency)].join("|");
    if (subscription.streamKey === streamKey) return;
    this.#unsubscribe(subscription);
    subscription.streamKey = streamKey;
    const stream = this.#streams.get(streamKey) ?? this.#open(streamKey, identity, scope, rung, keep);
    const subject = subjectKey(dependency);
    const subscriptions = stream.subscriptions.get(subject) ?? new Set();
    stream.subscriptions.set(subject, subscriptions.add(subscription));
    if (stream.reflector.state.phase !== "pending") this.#events.changed(dependent, "resync");
  }

  #unsubscribe(subscription: Subscription): void {
    const { streamKey, dependency } = subscription;
    const stream = this.#streamOf(subscription);
    subscription.streamKey = undefined;
    if (streamKey === undefined || stream === undefined) return;
    const subject = subjectKey(dependency);
    stream.subscriptions.get(subject)?.delete(subscription);
    if (stream.subscriptions.get(subject)?.size === 0) stream.subscriptions.delete(subject);
    if (stream.subscriptions.size > 0) return;
    this.#streams.delete(streamKey);
    this.#rungs.forget(dependency);
    void stream.reflector.stop();
  }

  #open(streamKey: string, identity: Identity, scope: Scope, rung: Rung, keep: Keep): Stream {
    const { resource } = scope;
    const stream: Stream = {
      resource,
      rung,
      wasRefused: false,
      subscriptions: new Map(),
      index: new MemberIndex(),
      reflector: new Reflector<Seen>(new ListWatch(this.#transport, identity, scope), {
        keep,
        changed: (key, after, before) => {
          stream.index.changed(stream.reflector, key, after, before);
          const news = newsOf(after, before);
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
          for (const { dependent } of subscriptionsOf(stream)) this.#events.changed(dependent, "resync");
        },
        restarted: (reason) => {
          this.#events.restarted(resource, reason);
          if (reason === "ended") this.#askAgain(stream, A_WHILE_MS);
        },
      }),
    };
    this.#streams.set(streamKey, stream);
    stream.reflector.start();
    return stream;
  }

  /** Who is concerned by what an object was, or by what it is, is told once. */
  #changed(
    stream: Stream,
    key: string,
    after: Seen | undefined,
    before: Seen | undefined,
    news: "progress" | "change",
  ): void {
    const name = nameIn(key);
    const states = [after, before].filter((seen) => seen !== undefined);
    const subjects = new Set([key, ...states.flatMap((seen) => collectionsOf(key, seen))]);
    const concerned = new Set<string>();
    for (const subject of subjects)
      for (const { dependent, dependency, isNamed } of stream.subscriptions.get(subject) ?? []) {
        const isTold = !isCollection(dependency) || !dependency.choice || isChoice(after, before);
        if (isTold && isNamed(name)) concerned.add(dependent);
      }
    const cause = news === "progress" ? "resync" : "change";
    for (const dependent of concerned) this.#events.changed(dependent, cause);
  }

  /** A right that a review promised, or that was there, is not: what is on this stream goes one rung down if it can. */
  #narrow(stream: Stream): void {
    for (const subscription of subscriptionsOf(stream)) {
      if (rungBelow(stream.rung, subscription.dependency) === undefined) continue;
      this.#unsubscribe(subscription);
      this.#rungs.refused(subscription.dependency, stream.rung);
      void this.#subscribe(subscription);
    }
  }

  /**
   * Rights may have come or gone since they were asked for, if that is so long ago. A stream that could be wider gives way to
   * that; and nobody goes on to see through the controller's own what there is who may not list it any more.
   */
  #askAgain(stream: Stream, sinceMs: number): void {
    const { rung } = stream;
    const groups = new Set<string>();
    for (const { dependency } of subscriptionsOf(stream)) {
      const isConcerned = rung === "name" || (rung === "namespace" && dependency.wide) || isLent(rung, dependency);
      if (isConcerned && this.#rungs.reconsider(dependency, sinceMs)) groups.add(groupKey(dependency));
    }
    if (groups.size === 0) return;
    // The answer is for all of the group: those on other streams may never have been refused, and would not ask by themselves.
    for (const subscriptions of this.#subscriptions.values())
      for (const subscription of subscriptions.values())
        if (groups.has(groupKey(subscription.dependency))) void this.#subscribe(subscription);
  }
}

function subscriptionOf(dependent: string, dependency: Dependency): Subscription {
  const isNamed = nameMatcher(isCollection(dependency) ? dependency.names : undefined);
  return { dependent, dependency, isNamed, keep: keepFor(dependency), streamKey: undefined };
}

/** Whether the controller's own stream shows somebody else what there is. It is not refused when his right to know that ends. */
function isLent(rung: Rung, dependency: Dependency): boolean {
  return rung.startsWith("shared") && isTelling(dependency) && dependency.identity !== CONTROLLER;
}

function subscriptionsOf({ subscriptions }: Stream): Subscription[] {
  return [...subscriptions.values()].flatMap((each) => [...each]);
}
