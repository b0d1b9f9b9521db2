/** The changes of a store come in, the keys of the objects of each collection go out. It is made when it is first asked for. */
import { type CachedObject, collectionsOf } from "./cached-object.ts";
import type { Reflector } from "./reflector.ts";

type Store = Pick<Reflector<CachedObject>, "get" | "keys" | "revision">;

export class CollectionIndex {
  readonly #keys = new Map<string, Set<string>>();
  /** That of the store as it is indexed. */
  #revision = -1;

  /** Takes a change that the store has just taken. One that it missed has all of it made anew when it is asked for. */
  changed({ revision }: Store, key: string, after: CachedObject | undefined, before: CachedObject | undefined): void {
    if (this.#revision !== revision - 1) return;
    this.#revision = revision;
    if (before !== undefined) this.#remove(key, before);
    if (after !== undefined) this.#add(key, after);
  }

  keysOf(collection: string, store: Store): Iterable<string> {
    if (this.#revision !== store.revision) {
      this.#keys.clear();
      for (const key of store.keys()) {
        const seen = store.get(key);
        if (seen !== undefined) this.#add(key, seen);
      }
      this.#revision = store.revision;
    }
    return this.#keys.get(collection) ?? [];
  }

  #add(key: string, seen: CachedObject): void {
    for (const collection of collectionsOf(key, seen)) {
      const known = this.#keys.get(collection);
      if (known === undefined) this.#keys.set(collection, new Set([key]));
      else known.add(key);
    }
  }

  #remove(key: string, seen: CachedObject): void {
    for (const collection of collectionsOf(key, seen)) {
      const known = this.#keys.get(collection);
      known?.delete(key);
      if (known?.size === 0) this.#keys.delete(collection);
    }
  }
}
