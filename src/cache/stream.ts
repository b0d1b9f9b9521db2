/** A stream that subscriptions share, and what each of these is to it: who is called for what, and whose share of the streams it takes. */
import { isDeepStrictEqual } from "node:util";
import type { ReloaderView } from "../api/reloader.ts";
import { type NameMatcher, nameMatcher } from "../apimachinery/glob.ts";
import type { Resource } from "../apimachinery/objects.ts";
import type { ApiError } from "../kube/api-error.ts";
import { CONTROLLER, homeOf } from "../kube/identity.ts";
import { WORKLOAD_KINDS } from "../workloads/workload.ts";
import { type CachedObject, collectionsOf, isChoice, nameIn, type Projection, projectionFor } from "./cached-object.ts";
import type { CollectionIndex } from "./collection-index.ts";
import type { Reflector, ReflectorState, StreamState } from "./reflector.ts";
import { isCollection, isTelling, namespaceOf, resourceOf, type Subscription } from "./subscription.ts";
import type { WatchScope } from "./watch-scope.ts";

export interface Stream {
  key: string;
  resource: Resource;
  watchScope: WatchScope;
  /** The namespace whose share it is of; undefined for one that all share. */
  tenant: string | undefined;
  /** Why it is not open, from when it had to wait until it has brought something. */
  held: ApiError | undefined;
  /** It counts among the streams of its namespace. */
  hasRoom: boolean;
  /** It has been begun, and has brought nothing yet. */
  isOpening: boolean;
  wasRefused: boolean;
  wasSynced: boolean;
  /** Undefined while it waits for room, or for its turn. */
  reflector: Reflector<CachedObject> | undefined;
  /** By subject. A binding may subscribe twice, as itself and through its account. */
  subscribers: Map<string, Set<Subscriber>>;
  index: CollectionIndex;
}

export interface Subscriber {
  /** The key that depends on it, prefixed so that keys of different controllers never collide. */
  dependent: string;
  notify(cause: "change" | "resync", name?: string): void;
  dependency: Subscription;
  /** Whether a name is of a collection. */
  isNamed: NameMatcher;
  keep: Projection;
  /** Undefined while it is being found out which stream may carry it, and where none does. */
  streamKey: string | undefined;
  /** Why no stream carries it. */
  refused: ApiError | undefined;
  /** The last stream that carried it was in sync. */
  wasSynced: boolean;
  /** Its stream is one of those of which a binding may have some only. */
  isOneByOne: boolean;
}

export function subscriberOf(
  dependent: string,
  dependency: Subscription,
  notify: Subscriber["notify"],
  view?: ReloaderView,
): Subscriber {
  const { names, exceptNames } = isCollection(dependency) ? dependency : { names: undefined };
  const isNamed = nameMatcher(names, exceptNames);
  const keep = projectionFor(dependency, view);
  const none = { streamKey: undefined, refused: undefined, wasSynced: false, isOneByOne: false };
  return { dependent, notify, dependency, isNamed, keep, ...none };
}

/** What is read from a stream. */
export function phaseOf({ held, reflector }: Stream): ReflectorState {
  if (held !== undefined) return { phase: "failed", error: held };
  return reflector?.state ?? { phase: "pending" };
}

/** How it is, for metrics and readiness. */
export function stateOf({ reflector, resource }: Stream): StreamState {
  if (reflector !== undefined) return reflector.stateOf(resource);
  const { group, plural } = resource;
  const name = group === "" ? plural : `${group}/${plural}`;
  return { resource: name, phase: "waiting", refused: true, quietSeconds: 0, interruptedSeconds: 0 };
}

/**
 * The namespace whose share a stream is of: that of its account, or that of which the controller looks at one account. What the controller
 * watches for everybody is of no share, but for what some account alone would have it watched by.
 */
export function tenantOf(watchScope: WatchScope, dependency: Subscription): string | undefined {
  if (dependency.identity === CONTROLLER) return watchScope === "name" ? namespaceOf(dependency) : undefined;
  return watchScope === "shared" && isUsual(dependency) ? undefined : homeOf(dependency.identity);
}

/** Whether everybody's stream of that kind serves for it: it has no labels, and no paths, of its own. */
function isUsual(dependency: Subscription): boolean {
  const { workload } = dependency;
  if (isCollection(dependency) && dependency.labels !== "") return false;
  if (workload === undefined) return true;
  const { kind } = resourceOf(dependency);
  const known = Object.hasOwn(WORKLOAD_KINDS, kind) ? WORKLOAD_KINDS[kind as keyof typeof WORKLOAD_KINDS] : undefined;
  return known !== undefined && isDeepStrictEqual(workload, { template: known.template });
}

/** Whether the controller's own stream serves another account. The API server does not end it when that account loses its permission. */
export function isLent(watchScope: WatchScope, dependency: Subscription): boolean {
  return watchScope.startsWith("shared") && isTelling(dependency) && dependency.identity !== CONTROLLER;
}

export function subscribersOf({ subscribers }: Stream): Subscriber[] {
  return [...subscribers.values()].flatMap((each) => [...each]);
}

/** Of comparing the name in an event with the patterns of all subscribers: some 10 ms. */
const MAX_EFFORT = 1_000_000;

/** Notifies each subscriber that the former or the new state of an object concerns, once, or may concern. */
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
    for (const subscriber of stream.subscribers.get(subject) ?? []) {
      const { dependency, isNamed } = subscriber;
      const isRelevant = !isCollection(dependency) || !dependency.choice || isChoice(after, before);
      if (isRelevant && (effort.left < 0 || isNamed(name, effort))) concerned.push(subscriber);
    }
  notifyAll(concerned, news === "progress" ? "resync" : "change", name);
}

/** Each key once, however many of its subscriptions are concerned. `name` is the object that changed, if it is one. */
export function notifyAll(subscribers: readonly Subscriber[], cause: "change" | "resync", name?: string): void {
  const notified = new Set<string>();
  for (const { dependent, notify } of subscribers) {
    if (notified.has(dependent)) continue;
    notified.add(dependent);
    notify(cause, name);
  }
}
