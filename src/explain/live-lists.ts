/**
 * Answers what the watches of the controller would show, by lists that are requested once. Code that reads a watch runs again until it needs
 * no further list.
 */
import { nameMatcher } from "../apimachinery/glob.ts";
import { apiVersionOf, type KubeObject } from "../apimachinery/objects.ts";
import { projectionFor } from "../cache/cached-object.ts";
import type { ReflectorState } from "../cache/reflector.ts";
import type { CollectionSubscription } from "../cache/subscription.ts";
import type { ListedObject } from "../cache/watcher.ts";
import { ApiError } from "../kube/api-error.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { ListWatch, type WatchTransport } from "../kube/list-watch.ts";

type Listed = { objects: readonly KubeObject[] } | { error: ApiError };

export class LiveLists {
  readonly #transport: WatchTransport;
  readonly #known = new Map<string, Listed>();
  readonly #wanted = new Map<string, CollectionSubscription>();
  readonly #running = new Map<string, Promise<void>>();

  constructor(transport: WatchTransport) {
    this.#transport = transport;
  }

  /** The objects, or `pending` until `settled` has requested the list. */
  list(_: string, collection: CollectionSubscription): ReflectorState & { members: ListedObject[] } {
    const key = keyOf(collection);
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#wanted.set(key, collection);
      return { phase: "pending", members: [] };
    }
    if ("error" in known) return { phase: "failed", error: known.error, members: [] };
    const isNamed = nameMatcher(collection.names, collection.exceptNames);
    const project = projectionFor(collection);
    const members = known.objects
      .filter(({ metadata }) => isNamed(metadata.name))
      .map((object) => {
        const { namespace, name } = object.metadata;
        return { ...(namespace !== undefined && { namespace }), name, version: project(object) };
      });
    return { phase: "synced", members };
  }

  /** The result of the work once all lists that it reads are known. */
  async settled<T>(work: () => T): Promise<T> {
    for (;;) {
      this.#wanted.clear();
      const result = work();
      if (this.#wanted.size === 0) return result;
      await Promise.all([...this.#wanted].map(([key, each]) => this.#request(key, each)));
    }
  }

  #request(key: string, collection: CollectionSubscription): Promise<void> {
    const running = this.#running.get(key) ?? this.#load(key, collection);
    this.#running.set(key, running);
    return running;
  }

  async #load(key: string, { identity, resource, namespace, labels, whole, fields }: CollectionSubscription) {
    const form = whole || fields !== undefined ? ("whole" as const) : ("metadata" as const);
    const scope = { resource, namespace, form, ...(labels !== "" && { labels }) };
    const objects: KubeObject[] = [];
    // The items of a list have no kind; only the list has it.
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    try {
      const pages = new ListWatch(this.#transport, identity, scope).list(new AbortController().signal);
      for await (const { items } of pages) objects.push(...items.map((item) => ({ ...item, ...type })));
      this.#known.set(key, { objects });
    } catch (error) {
      if (!(error instanceof ApiError) || (error.status === 0 && identity === CONTROLLER)) throw error;
      this.#known.set(key, { error });
    }
  }
}

const keyOf = ({ identity, resource, namespace, labels, whole, fields }: CollectionSubscription): string =>
  JSON.stringify([identity, apiVersionOf(resource), resource.plural, namespace, labels, whole, fields]);
