/** The ServiceAccounts, Roles and RoleBindings that have the label or the finalizer inlay.dev/access, by namespace. */
import { ACCESS, ACCESS_LABEL_VALUE } from "../../api/access.ts";
import { namespaceIn } from "../../api/binding.ts";
import type { KubeObject, Resource } from "../../apimachinery/objects.ts";
import { objectKey } from "../../cache/reflector.ts";

/** How many objects of a namespace get the finalizer. */
export const MAX_IN_NAMESPACE = 64;

export interface KeptObject {
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly finalizers: readonly string[];
  readonly isLabelled: boolean;
  /** If it is deleted: when, and when this process observed it, in ms of the epoch. */
  readonly deletion: { readonly at: number; readonly seenAt: number } | undefined;
}

export const isMarked = ({ finalizers }: KeptObject): boolean => finalizers.includes(ACCESS);

export class KeptObjects {
  readonly #namespaces = new Map<string, Map<string, KeptObject>>();

  get namespaces(): string[] {
    return [...this.#namespaces.keys()];
  }

  /** In the order in which they were first seen. */
  in(namespace: string): KeptObject[] {
    return [...(this.#namespaces.get(namespace)?.values() ?? [])];
  }

  has(namespace: string): boolean {
    return this.#namespaces.has(namespace);
  }

  put(resource: Resource, { metadata }: KubeObject): void {
    const { namespace = "", name, resourceVersion, finalizers = [], labels = {}, deletionTimestamp } = metadata;
    const isLabelled = labels[ACCESS] === ACCESS_LABEL_VALUE;
    const here = this.#namespaces.get(namespace) ?? new Map<string, KeptObject>();
    const key = keyOf(resource, name);
    const seenAt = here.get(key)?.deletion?.seenAt ?? Date.now();
    const deletion = deletionTimestamp === undefined ? undefined : { at: Date.parse(deletionTimestamp), seenAt };
    const object = { resource, namespace, name, resourceVersion, finalizers, isLabelled, deletion };
    const hasRoom = here.size < MAX_IN_NAMESPACE || here.has(key);
    if (isMarked(object) || (isLabelled && hasRoom)) this.#namespaces.set(namespace, here.set(key, object));
    else this.remove(resource, objectKey(namespace, name));
  }

  /** `key` is that of a store: `namespace/name`. */
  remove(resource: Resource, key: string): void {
    const namespace = namespaceIn(key);
    const here = this.#namespaces.get(namespace);
    here?.delete(keyOf(resource, key.slice(namespace.length + 1)));
    if (here?.size === 0) this.#namespaces.delete(namespace);
  }

  clear(): void {
    this.#namespaces.clear();
  }
}

const keyOf = ({ plural }: Resource, name: string) => `${plural}/${name}`;
