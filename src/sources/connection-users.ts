/** The bindings that read through each VaultConnection, so that a change of a connection does not look at all bindings. */
import type { SecretBinding } from "../api/binding.ts";

export class ConnectionUsers {
  /** The connections of each binding, and the bindings of each connection. All are named by their `namespace/name`. */
  readonly #connections = new Map<string, ReadonlySet<string>>();
  readonly #bindings = new Map<string, Set<string>>();

  set(binding: string, { metadata, spec }: Pick<SecretBinding, "metadata" | "spec">): void {
    const used = spec.sources.flatMap(({ vault }) =>
      vault === undefined ? [] : [`${vault.connection.namespace ?? metadata.namespace}/${vault.connection.name}`],
    );
    this.delete(binding);
    if (used.length === 0) return;
    this.#connections.set(binding, new Set(used));
    for (const each of used) this.#bindings.set(each, (this.#bindings.get(each) ?? new Set()).add(binding));
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
