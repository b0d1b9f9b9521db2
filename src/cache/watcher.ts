/** The interface of the cache for a controller: it subscribes to objects and collections by its own keys, and reads them. Types only. */
import type { Effort } from "../apimachinery/glob.ts";
import type { CachedObject } from "./cached-object.ts";
import type { ReflectorState } from "./reflector.ts";
import type { CollectionSubscription, ObjectSubscription, Subscription } from "./subscription.ts";

/**
 * Called with a key of a controller when an object that the key depends on may have changed. `cause` is `change` for a change, and `resync`
 * when a watch gets in or out of sync, or for changes that can wait a little. `name` is the changed object.
 */
export type ChangeHandler = (key: string, cause: "change" | "resync", name?: string) => void;

/** The objects that one controller watches. The keys are the controller's own. */
export interface Watcher {
  /** Replaces the dependencies of `key`. The handler is called when each object is first known, and at every later change. */
  subscribe(key: string, subscriptions: readonly Subscription[]): void;
  /** The same for many subscriptions. Yields where it may be interrupted; the generator must run to its end. */
  subscribing(key: string, subscriptions: readonly Subscription[]): Generator<void, void>;
  /**
   * Returns whether the watch for a subscription of `key` is in sync, and the version of the object. `name` is the object of a collection.
   */
  get(key: string, subscription: Subscription, name?: string): ReflectorState & { version?: CachedObject };
  /** The names of the workloads beside a workload, if its watch shows them. */
  namesBeside(key: string, workload: ObjectSubscription): Iterable<string>;
  /**
   * Returns whether the watch for a collection of `key` is in sync, and the objects of the collection: without names, the same array until
   * one of them changes. The list is incomplete once the effort is spent.
   */
  list(
    key: string,
    collection: CollectionSubscription,
    effort?: Effort,
  ): ReflectorState & { members: readonly ListedObject[] };
}

/** An object of a collection. */
export interface ListedObject {
  namespace?: string;
  name: string;
  version: CachedObject;
}
