/** Indexes the objects of a store by collection. The index is built when it is first used. */
import { type CachedObject, collectionsOf, nameIn } from "./cached-object.ts";
import type { Reflector } from "./reflector.ts";
import type { ListedObject } from "./watcher.ts";

type Store = Pick<Reflector<CachedObject>, "get" | "keys" | "revision">;

export class CollectionIndex {
  readonly #keys = new Map<string, Set<string>>();
  /** The collections that were listed since their objects last changed. */
  readonly #members = new Map<string, readonly ListedObject[]>();
  /** The revision of the store that is indexed. */
  #revision = -1;

  /** Applies a change that the store has just applied. After a missed change, the whole index is rebuilt at its next use. */
  changed({ revision }: Store, key: string, after: CachedObject | undefined, before: CachedObject | undefined): void {
    if (this.#revision !== revision - 1) return;
    this.#revision = revision;
    if (before !== undefined) this.#remove(key, before);
    if (after !== undefined) this.#add(key, after);
  }

  keysOf(collection: string, store: Store): Iterable<string> {
    if (this.#revision !== store.revision) {
      this.#keys.clear();
      this.#members.clear();
      for (const key of store.keys()) {
        const seen = store.get(key);
        if (seen !== undefined) this.#add(key, seen);
      }
      this.#revision = store.revision;
    }
    return this.#keys.get(collection) ?? [];
  }

  /** The same array until one of the objects changes. `namespace` is that of the collection. */
  membersOf(collection: string, namespace: string | undefined, store: Store): readonly ListedObject[] {
    const keys = this.keysOf(collection, store);
    const known = this.#members.get(collection);
    if (known !== undefined) return known;
    const members = membersAt(keys, namespace, store);
    this.#members.set(collection, members);
    return members;
  }

  #add(key: string, seen: CachedObject): void {
    for (const collection of collectionsOf(key, seen)) {
      this.#members.delete(collection);
      const known = this.#keys.get(collection);
      if (known === undefined) this.#keys.set(collection, new Set([key]));
      else known.add(key);
    }
  }

  #remove(key: string, seen: CachedObject): void {
    for (const collection of collectionsOf(key, seen)) {
      this.#members.delete(collection);
      const known = this.#keys.get(collection);
      known?.delete(key);
      if (known?.size === 0) this.#keys.delete(collection);
    }
  }
}

/** Those of the objects that exist. */
export function membersAt(
  keys: Iterable<string>,
  namespace: string | undefined,
  store: Pick<Store, "get">,
): ListedObject[] {
  const members: ListedObject[] = [];
  for (const key of keys) {
    const version = store.get(key);
    if (version !== undefined)
      members.push({ ...(namespace !== undefined && { namespace }), name: nameIn(key), version });
  }
  return members;
}
