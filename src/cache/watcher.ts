/** What a controller sees of the cache: it subscribes to objects and collections by its own keys, and reads them. Types only. */
import type { Effort } from "../apimachinery/glob.ts";
import type { CachedObject } from "./cached-object.ts";
import type { ReflectorState } from "./reflector.ts";
import type { CollectionSubscription, Subscription } from "./subscription.ts";

/**
 * Called with a key of a controller when something that the key depends on may have changed: `change` for a change, `resync`
 * when a watch is in sync, or no longer is, and for what can wait a little. `name` is the object that changed.
 */
export type ChangeHandler = (key: string, cause: "change" | "resync", name?: string) => void;

/** The objects that one controller watches. The keys are the controller's own. */
export interface Watcher {
  /** Replaces what `key` depends on. The handler is called when each is first known, and at every change after that. */
  subscribe(key: string, subscriptions: readonly Subscription[]): void;
  /**
   * Whether the watch that carries a subscription of `key` is in sync, and the version of the object that it shows. `name` is
   * the object of a collection.
   */
  get(key: string, subscription: Subscription, name?: string): ReflectorState & { version?: CachedObject };
  /**
   * Whether the watch that carries a collection of `key` is in sync, and which objects are in the collection; not all of them
   * once the effort is spent.
   */
  list(key: string, collection: CollectionSubscription, effort?: Effort): ReflectorState & { members: ListedObject[] };
}

/** An object of a collection. */
export interface ListedObject {
  namespace?: string;
  name: string;
  version: CachedObject;
}
