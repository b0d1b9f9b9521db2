/** Which bindings protect which Secrets and ConfigMaps. */
import type { StoredBinding } from "../api/binding.ts";
import { getOrInsert } from "../apimachinery/maps.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";

const keyOf = (kind: string, namespace: string | undefined, name: string) => `${kind} ${namespace}/${name}`;

export class Protections {
  /** The names of bindings by their uids, by protected object. */
  readonly #byObject = new Map<string, Map<string, string>>();
  /** The protected objects of a binding, by its uid. */
  readonly #objects = new Map<string, readonly string[]>();

  put({ metadata: { uid, name, namespace }, spec }: StoredBinding): void {
    this.removed(uid);
    const keys = spec.sources.flatMap(({ protect, secret, configMap }) => {
      const object = secret ?? configMap;
      if (protect === undefined || object === undefined) return [];
      return keyOf(secret === undefined ? "ConfigMap" : "Secret", namespace, object.name);
    });
    if (keys.length > 0) this.#objects.set(uid, keys);
    for (const key of keys) {
      getOrInsert(this.#byObject, key, () => new Map()).set(uid, name);
    }
  }

  removed(uid: string): void {
    for (const key of this.#objects.get(uid) ?? []) {
      const bindings = this.#byObject.get(key);
      bindings?.delete(uid);
      if (bindings?.size === 0) this.#byObject.delete(key);
    }
    this.#objects.delete(uid);
  }

  /** In order. Both kinds are in the core group. */
  of({ resource: { group, kind }, namespace, name }: ObjectRef): string[] {
    return group !== "" ? [] : [...(this.#byObject.get(keyOf(kind, namespace, name))?.values() ?? [])].sort();
  }
}
