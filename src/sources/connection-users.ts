/** The bindings that read through each connection to a store, so that a change of a connection does not look at all bindings. */
import type { SecretBinding } from "../api/binding.ts";
import { idOf } from "../apimachinery/objects.ts";
import { parseSources } from "./registry.ts";

export class ConnectionUsers {
  /** The connections of each binding, and the bindings of each connection: bindings by `namespace/name`, connections by their id. */
  readonly #connections = new Map<string, ReadonlySet<string>>();
  readonly #bindings = new Map<string, Set<string>>();

  set(key: string, binding: SecretBinding): void {
    const used = parseSources(binding).flatMap(({ store }) => (store?.connection ? [idOf(store.connection.ref)] : []));
    this.delete(key);
    if (used.length === 0) return;
    this.#connections.set(key, new Set(used));
    for (const each of used) this.#bindings.set(each, (this.#bindings.get(each) ?? new Set()).add(key));
  }

  delete(binding: string): void {
    for (const each of this.#connections.get(binding) ?? []) {
      const bindings = this.#bindings.get(each);
      bindings?.delete(binding);
      if (bindings?.size === 0) this.#bindings.delete(each);
    }
    this.#connections.delete(binding);
  }

  of(connection: string): string[] {
    return [...(this.#bindings.get(connection) ?? [])];
  }
}
