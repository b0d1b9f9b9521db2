/**
 * Mirrors all objects of one of Inlay's own kinds by one watch, in the cluster or in one namespace. The API server's answer to our own
 * write counts until the watch shows the write.
 */
import { isOlder, type ObjectMeta, type Resource } from "../apimachinery/objects.ts";
import type { ApiError } from "../kube/api-error.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { ListWatch, type WatchTransport } from "../kube/list-watch.ts";
import { objectKey, Reflector, type RestartReason, type StreamState } from "./reflector.ts";

/** The part of an object that the store itself reads. */
export interface StoredObject {
  metadata: Pick<ObjectMeta, "name" | "namespace" | "uid" | "resourceVersion" | "managedFields">;
}

/** Reports changes of the objects to the controllers that reconcile them. */
interface StoreListener<T> {
  /** An object is new or changed. */
  changed(key: string, object: T): void;
  /** An object was deleted, even if another one of the same name exists now. `object` is its last state. */
  gone(key: string, object: T): void;
  /** The watch is in sync, for the first time or again. */
  synced(): void;
}

/** Reports the state of the watch, for logs and metrics. */
interface StoreEvents {
  /** The objects can't be listed, because the CRD or the permission is missing. The list is retried. */
  failed(resource: Resource, error: ApiError): void;
  restarted(resource: Resource, reason: RestartReason): void;
}

/** An object as it is kept. */
export interface Entry<T> {
  readonly resourceVersion: string;
  object: T;
}

/** Decides how much of each object is kept. It may reduce `object` of an entry at any time. */
export interface Keeper<T> {
  /** The entry is new, or replaces the one of the same object. Called before the listeners. */
  put(entry: Entry<T>): void;
  /** The entry is not kept any more. */
  removed(entry: Entry<T>): void;
  /** The entry is not kept, because the list failed in which it arrived, and nothing else is kept of its object. */
  dropped(entry: Entry<T>): void;
}

export class ResourceStore<T extends StoredObject> {
  readonly #resource: Resource;
  readonly #reflector: Reflector<Entry<T>>;
  readonly #listeners: StoreListener<T>[] = [];
  /** The answers to our own writes that the watch has not shown yet. */
  readonly #written = new Map<string, T>();
  #keeper: Keeper<T> | undefined;

  /** Watches all namespaces, unless one is given. */
  constructor(transport: WatchTransport, resource: Resource, events: StoreEvents, namespace?: string) {
    this.#resource = resource;
    const source = new ListWatch(transport, CONTROLLER, { resource, form: "whole", namespace });
    this.#reflector = new Reflector<Entry<T>>(source, {
      keep: (object) => {
        const entry = {
          resourceVersion: object.metadata.resourceVersion,
          object: withoutManagedFields(object as StoredObject as T),
        };
        this.#keeper?.put(entry);
        return entry;
      },
      dropped: (key, entry) => {
        this.#keeper?.removed(entry);
        const there = this.#reflector.get(key);
        if (there === undefined) this.#keeper?.dropped(entry);
        else this.#keeper?.put(there);
      },
      changed: (key, after, before) => {
        if (after === undefined) this.#written.delete(key);
        if (before !== undefined) this.#keeper?.removed(before);
        const isAnother = before?.object.metadata.uid !== after?.object.metadata.uid;
        for (const listener of this.#listeners) {
          if (before !== undefined && isAnother) listener.gone(key, before.object);
          if (after !== undefined) listener.changed(key, after.object);
        }
      },
      stateChanged: (state) => {
        if (state.phase === "failed") events.failed(resource, state.error);
        if (state.phase === "synced") for (const listener of this.#listeners) listener.synced();
      },
      restarted: (reason) => events.restarted(resource, reason),
    });
  }

  /** Listeners are called in the order in which they were added. */
  listen(listener: StoreListener<T>): void {
    this.#listeners.push(listener);
  }

  /** Reduces what is kept of the objects. Call it before `start`. */
  keepBy(keeper: Keeper<T>): void {
    this.#keeper = keeper;
  }

  /** The entry of an object, as the watch has shown it. */
  entryOf(key: string): Entry<T> | undefined {
    return this.#reflector.get(key);
  }

  get(key: string): T | undefined {
    const watched = this.#reflector.get(key)?.object;
    const written = this.#written.get(key);
    if (watched === undefined) return undefined;
    if (written !== undefined && isOlder(watched.metadata, written.metadata)) return written;
    this.#written.delete(key);
    return watched;
  }

  /** Every object, as the watch has shown it. */
  get all(): T[] {
    return [...this.#reflector.values()].map(({ object }) => object);
  }

  /**
   * Uses the API server's answer to our own write as the object's state until the watch has caught up. The answer to the last write of a
   * deleted object may arrive after the watch has shown the deletion.
   */
  wrote(object: T): void {
    const key = objectKey(object.metadata.namespace, object.metadata.name);
    if (this.#reflector.get(key) !== undefined) this.#written.set(key, withoutManagedFields(object));
  }

  /** The state of the watch, for health and metrics. */
  get state(): StreamState {
    return this.#reflector.stateOf(this.#resource);
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    return this.#reflector.stop();
  }
}

/** Half of an object's size is managedFields. A status update without managedFields leaves them unchanged. */
export function withoutManagedFields<T extends StoredObject>(object: T): T {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
