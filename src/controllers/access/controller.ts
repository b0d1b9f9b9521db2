/**
 * Sets the finalizer inlay.dev/access on ServiceAccounts, Roles and RoleBindings with the label of that name, while their namespace has
 * bindings with something to release. So a commit that removes all of them at once does not take the permissions before the release. Does
 * nothing without the optional ClusterRole inlay-access.
 */
import { FINALIZER, namespaceIn } from "../../api/binding.ts";
import { CONTROLLER_MANAGER } from "../../api/field-manager.ts";
import type { KubeObject, ObjectMeta, Resource } from "../../apimachinery/objects.ts";
import { ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS } from "../../apimachinery/resources.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import { objectKey, Reflector } from "../../cache/reflector.ts";
import { isNotFound, isStatus } from "../../kube/api-error.ts";
import type { Client } from "../../kube/client.ts";
import { CONTROLLER } from "../../kube/identity.ts";
import type { ListWatch, Scope } from "../../kube/list-watch.ts";
import { DONE, WorkQueue, type WorkResult } from "../../workqueue/work-queue.ts";

/** The label by which a ServiceAccount, Role or RoleBinding asks for the finalizer of the same name. */
const ACCESS = "inlay.dev/access";
const ACCESS_LABEL_VALUE = "true";

/** How many objects of a namespace get the finalizer. */
export const MAX_IN_NAMESPACE = 64;

interface KeptObject {
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

const KINDS = [SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS];
/** The key that starts and ends the watches. All others are names of namespaces. */
const WATCHES = "";
/** How long a deleted object waits for the release of bindings: as long as Inlay tries to release a binding. */
const MOST_MS = 60_000;
/** How long it waits until one of them is deleted too. Without that, the deletion is a decision about the object alone. */
const ALONE_MS = 20_000;
/** The minimum, after this process observed the deletion: that may be long ago, and the bindings have the same minimum. */
const LEAST_MS = 10_000;
/** How often to ask for the ClusterRole. */
const ASK_EVERY_MS = 60_000;
/** While the watch of the bindings is not in sync. */
const SOON: WorkResult = { retry: "after", ms: 1_000 };
/** After as many changes as a namespace may have finalizers: others have their turn. Any user may set the finalizer on many objects. */
const MORE: WorkResult = { retry: "after", ms: 100 };

interface AccessServices {
  installation: { readonly scope: string | undefined };
  client: Pick<Client, "may" | "mergePatch">;
  listWatch: (scope: Scope) => Pick<ListWatch, "list" | "watch">;
  bindings: Pick<BindingStore, "get" | "listen" | "state">;
  serverTime: () => number;
}

export class AccessController {
  readonly name = "access";
  readonly queue = new WorkQueue({ concurrency: 4, backoffMs: { first: 100, most: 30_000 } });
  readonly #services: AccessServices;
  readonly #objects = new KeptObjects();
  /** The bindings with something to release, by namespace and key, and whether they are being deleted. */
  readonly #held = new Map<string, Map<string, boolean>>();
  #watches: Reflector<{ resourceVersion: string }>[] = [];

  constructor(services: AccessServices) {
    this.#services = services;
    const { bindings } = services;
    bindings.listen({
      changed: (key) => this.#hold(key, bindings.get(key)?.metadata),
      gone: (key) => this.#hold(key, undefined),
    });
  }

  start(): void {
    // In an installation for one namespace, no role allows it.
    if (this.#services.installation.scope === undefined) this.queue.add(WATCHES);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#watches.map((each) => each.stop()));
  }

  async reconcile(key: string): Promise<WorkResult> {
    return key === WATCHES ? this.#watch() : this.#reconcile(key);
  }

  async #watch(): Promise<WorkResult> {
    const { client } = this.#services;
    let isAllowed = true;
    for (const kind of KINDS) isAllowed &&= await client.may(CONTROLLER, "patch", kind);
    if (isAllowed && this.#watches.length === 0) {
      this.#watches = KINDS.map((kind) => this.#reflect(kind));
      for (const watch of this.#watches) watch.start();
    }
    if (!isAllowed) {
      const watches = this.#watches;
      this.#watches = [];
      await Promise.all(watches.map((each) => each.stop()));
      this.#objects.clear();
    }
    return { retry: "after", ms: ASK_EVERY_MS };
  }

  #reflect(resource: Resource): Reflector<{ resourceVersion: string }> {
    return new Reflector<{ resourceVersion: string }>(this.#services.listWatch({ resource, form: "metadata" }), {
      keep: (object) => {
        this.#objects.put(resource, object);
        return { resourceVersion: object.metadata.resourceVersion };
      },
      dropped: (key) => this.#objects.remove(resource, key),
      changed: (key, after) => {
        if (after === undefined) this.#objects.remove(resource, key);
        else if (this.#objects.has(namespaceIn(key))) this.queue.add(namespaceIn(key));
      },
      stateChanged: ({ phase }) => {
        if (phase === "synced") for (const namespace of this.#objects.namespaces) this.queue.add(namespace);
        if (phase === "failed") this.queue.add(WATCHES);
      },
    });
  }

  #hold(key: string, metadata: Pick<ObjectMeta, "finalizers" | "deletionTimestamp"> | undefined): void {
    const namespace = namespaceIn(key);
    const held = this.#held.get(namespace) ?? new Map<string, boolean>();
    const isDeleted = metadata?.finalizers?.includes(FINALIZER) ? metadata.deletionTimestamp !== undefined : undefined;
    if (held.get(key) === isDeleted) return;
    if (isDeleted === undefined) held.delete(key);
    else held.set(key, isDeleted);
    if (held.size > 0) this.#held.set(namespace, held);
    else this.#held.delete(namespace);
    if (this.#objects.has(namespace)) this.queue.add(namespace);
  }

  async #reconcile(namespace: string): Promise<WorkResult> {
    const { bindings, serverTime } = this.#services;
    const objects = this.#objects.in(namespace);
    const { phase, unserved = false } = bindings.state;
    // Without the CRD, there are no bindings to wait for. While the watch fails otherwise, there may be some that it has not shown.
    const isKnown = phase === "synced" || unserved;
    const held = unserved ? [] : [...(this.#held.get(namespace)?.values() ?? [])];
    const most = !isKnown || held.includes(true) ? MOST_MS : ALONE_MS;
    const waits: number[] = [];
    const errors: unknown[] = [];
    let changes = 0;
    for (const [position, each] of objects.entries()) {
      const { deletion } = each;
      const left = deletion && Math.max(deletion.at + most - serverTime(), deletion.seenAt + LEAST_MS - Date.now());
      if (left === undefined && !isKnown) continue;
      const isWanted = left === undefined ? each.isLabelled : isMarked(each) && left > 0;
      const isKept = (!isKnown || held.length > 0) && isWanted && position < MAX_IN_NAMESPACE;
      if (isKept && left !== undefined) waits.push(left);
      if (isKept === isMarked(each)) continue;
      if (changes === MAX_IN_NAMESPACE) break;
      try {
        await this.#mark(each, isKept);
        changes++;
      } catch (error) {
        // An object that can't be changed keeps no other.
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
    if (changes === MAX_IN_NAMESPACE) return MORE;
    if (phase !== "synced" && objects.length > 0) return SOON;
    return waits.length === 0 ? DONE : { retry: "after", ms: Math.min(...waits) };
  }

  /** Only finalizers change, so the API server asks for neither bind nor escalate. */
  async #mark({ resource, namespace, name, resourceVersion, finalizers }: KeptObject, isKept: boolean): Promise<void> {
    const others = finalizers.filter((each) => each !== ACCESS);
    const metadata = { resourceVersion, finalizers: isKept ? [...others, ACCESS] : others };
    const ref = { resource, namespace, name };
    try {
      await this.#services.client.mergePatch(CONTROLLER, ref, { metadata }, CONTROLLER_MANAGER);
    } catch (error) {
      // The watch shows what has changed.
      if (!isNotFound(error) && !isStatus(error, 409)) throw error;
    }
  }
}
