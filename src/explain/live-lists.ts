/**
 * Answers what the watches of the controller would show, by lists that are requested once. Code that reads a watch runs again until it needs
 * no further list.
 */
import { nameMatcher } from "../apimachinery/glob.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import { apiVersionOf, type KubeObject } from "../apimachinery/objects.ts";
import { type CachedObject, projectionFor } from "../cache/cached-object.ts";
import type { ReflectorState } from "../cache/reflector.ts";
import {
  type CollectionSubscription,
  isCollection,
  needsWholeObject,
  type ObjectSubscription,
  type Subscription,
} from "../cache/subscription.ts";
import type { ListedObject } from "../cache/watcher.ts";
import { ApiError } from "../kube/api-error.ts";
import type { Scope, WatchTransport } from "../kube/list-watch.ts";
import { objectsIn, SELF } from "./reading.ts";

type Listed = { objects: readonly KubeObject[] } | { error: ApiError };

export class LiveLists {
  readonly #transport: WatchTransport;
  readonly #known = new Map<string, Listed>();
  readonly #wanted = new Map<string, Subscription>();
  readonly #running = new Map<string, Promise<void>>();

  constructor(transport: WatchTransport) {
    this.#transport = transport;
  }

  /** The objects, or `pending` until `settled` has requested the list. */
  list(_: string, collection: CollectionSubscription): ReflectorState & { members: ListedObject[] } {
    const isNamed = nameMatcher(collection.names, collection.exceptNames);
    const project = projectionFor(collection);
    const { objects, ...state } = this.#look(collection);
    const members = objects
      .filter(({ metadata }) => isNamed(metadata.name))
      .map((object) => {
        const { namespace, name } = object.metadata;
        return { ...(namespace !== undefined && { namespace }), name, version: project(object) };
      });
    return { ...state, members };
  }

  /** One object, in the same way. */
  get(_: string, wanted: ObjectSubscription): ReflectorState & { version?: CachedObject } {
    const { objects, ...state } = this.#look(wanted);
    const [version] = objects.map(projectionFor(wanted));
    return version === undefined ? state : { ...state, version };
  }

  #look(wanted: Subscription): ReflectorState & { objects: readonly KubeObject[] } {
    const key = keyOf(wanted);
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#wanted.set(key, wanted);
      return { phase: "pending", objects: [] };
    }
    if ("error" in known) return { phase: "failed", error: known.error, objects: [] };
    return { phase: "synced", objects: known.objects };
  }

  /** The result of the work once all lists that it reads are known. Others may read lists while it waits. */
  async settled<T>(work: () => T | Promise<T>): Promise<T> {
    for (;;) {
      const known = this.#known.size;
      const result = await work();
      if (this.#wanted.size === 0 && this.#known.size === known) return result;
      await Promise.all([...this.#wanted].map(([key, each]) => this.#request(key, each)));
    }
  }

  #request(key: string, wanted: Subscription): Promise<void> {
    return getOrInsert(this.#running, key, () => this.#load(key, wanted));
  }

  async #load(key: string, wanted: Subscription) {
    const { identity } = wanted;
    const objects: KubeObject[] = [];
    try {
      for await (const object of objectsIn(this.#transport, identity, scopeOf(wanted))) objects.push(object);
      this.#known.set(key, { objects });
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status === 0 && identity === SELF)) throw error;
      this.#known.set(key, { error });
    }
    this.#wanted.delete(key);
  }
}

function scopeOf(wanted: Subscription): Scope {
  const form = needsWholeObject(wanted) ? "whole" : "metadata";
  if (!isCollection(wanted)) return { ...wanted.ref, form };
  const { resource, namespace, labels } = wanted;
  return { resource, namespace, form, ...(labels !== "" && { labels }) };
}

function keyOf(wanted: Subscription): string {
  const { resource, namespace, name, labels, form } = scopeOf(wanted);
  return JSON.stringify([wanted.identity, apiVersionOf(resource), resource.plural, namespace, name, labels, form]);
}
