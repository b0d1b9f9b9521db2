/** Watches for unit tests: the test says which objects they show, and which watches are pending or fail. */
import type { ObjectRef } from "../../src/apimachinery/objects.ts";
import type { CachedObject } from "../../src/cache/cached-object.ts";
import type { ReflectorState } from "../../src/cache/reflector.ts";
import {
  type CollectionSubscription,
  isCollection,
  type ObjectSubscription,
  type Subscription,
} from "../../src/cache/subscription.ts";
import type { ListedObject, Watcher } from "../../src/cache/watcher.ts";
import { apiError } from "./cache/list-watch.ts";

/** `registry/secrets/bucket`, or `registry/secrets` for all objects of the kind there. */
export function placeOf({ resource, namespace, name }: Pick<ObjectRef, "resource"> & Partial<ObjectPlace>): string {
  return [namespace, resource.plural, name].filter((part) => part !== undefined).join("/");
}
interface ObjectPlace {
  namespace: string | undefined;
  name: string;
}

export const version = (resourceVersion: string, generation?: number, uid = "uid"): CachedObject => ({
  uid,
  resourceVersion,
  generation,
});

export class FakeInformers implements Watcher {
  /** The version of each object, by its place. */
  readonly objects = new Map<string, CachedObject>();
  /** The state of each watch that is not in sync, by its objects. */
  readonly #states = new Map<string, ReflectorState>();
  readonly #watched = new Map<string, readonly Subscription[]>();

  /** The watch is not in sync yet. */
  pend(place: string): void {
    this.#states.set(place, { phase: "pending" });
  }

  /** The API server refuses the watch, or answers it with another failure. */
  refuse(place: string, error = apiError(403, "Forbidden")): void {
    this.#states.set(place, { phase: "failed", error });
  }

  /** The watch is in sync. */
  sync(place: string): void {
    this.#states.delete(place);
  }

  /** What a binding watches now. */
  watchedBy(dependent: string): string[] {
    return (this.#watched.get(dependent) ?? []).map((each) => placeOf(isCollection(each) ? each : each.ref));
  }

  subscribe(dependent: string, dependencies: readonly Subscription[]): void {
    this.#watched.set(dependent, dependencies);
  }

  *subscribing(dependent: string, dependencies: readonly Subscription[]): Generator<void, void> {
    yield;
    this.subscribe(dependent, dependencies);
  }

  get(_dependent: string, each: Subscription, name = ""): ReflectorState & { version?: CachedObject } {
    const seen = this.objects.get(placeOf(isCollection(each) ? { ...each, name } : each.ref));
    return { ...this.#stateOf(placeOf(isCollection(each) ? each : each.ref)), ...(seen && { version: seen }) };
  }

  namesBeside(_dependent: string, { ref: { resource, namespace } }: ObjectSubscription): string[] {
    const place = `${placeOf({ resource, ...(namespace !== undefined && { namespace }) })}/`;
    return [...this.objects.keys()].filter((key) => key.startsWith(place)).map((key) => key.slice(place.length));
  }

  list(_dependent: string, collection: CollectionSubscription): ReflectorState & { members: ListedObject[] } {
    const place = placeOf(collection);
    const members = [...this.objects].flatMap(([key, seen]): ListedObject[] => {
      const name = key.slice(place.length + 1);
      const isNamed = collection.names?.includes(name) ?? true;
      return key === `${place}/${name}` && isNamed ? [{ name, version: seen }] : [];
    });
    return { ...this.#stateOf(place), members };
  }

  #stateOf(place: string): ReflectorState {
    return this.#states.get(place) ?? { phase: "synced" };
  }
}
