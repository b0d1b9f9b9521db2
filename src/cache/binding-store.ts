/**
 * Stores the SecretBindings with their claims on objects: the fields that the spec names, and the fields that the status records as owned.
 */
import { bindingKey, namespaceIn, type SecretBinding, type StoredBinding } from "../api/binding.ts";
import { DEFAULT_LIMITS, type Limits } from "../api/limits.ts";
import { asRecorded } from "../api/status-records.ts";
import { isStub, stubOf } from "../api/stub.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import { type CpuScheduler, finish } from "../workqueue/cpu-scheduler.ts";
import { BindingRoom, type Excess } from "./binding-room.ts";
import { type CompetingClaim, FieldClaims, type PathList, type ResolvedTarget } from "./field-claims.ts";
import { Protections } from "./protections.ts";
import type { StreamState } from "./reflector.ts";
import { type Entry, type ResourceStore, withoutManagedFields } from "./resource-store.ts";

export interface BindingListener {
  /**
   * Called when a binding is new or changed, or when another binding that claims the same objects changed. `cause` is `resync` for every
   * binding once the watch is in sync.
   */
  changed(key: string, cause: "change" | "resync"): void;
  /** A binding was deleted, even if another one of the same name exists now. `binding` is its last state. */
  gone(key: string, binding: SecretBinding): void;
}

export class BindingStore {
  readonly #store: ResourceStore<StoredBinding>;
  readonly #claims = new FieldClaims();
  readonly #protections = new Protections();
  readonly #listeners: BindingListener[] = [];
  readonly #room: BindingRoom;
  readonly #cpu: Pick<CpuScheduler, "steps">;
  /** By uid. */
  readonly #entries = new Map<string, Entry<StoredBinding>>();
  /** The running updates of claims. */
  readonly #updates = new Map<string, Promise<void>>();
  #hasSynced = false;
  /** The last one that was asked for: each listener asks for a changed binding. */
  #last: { stored: StoredBinding; binding: SecretBinding } | undefined;

  /** Of bindings that exceed the limits, only stubs are kept. What concerns many objects or bindings is done by `cpu`. */
  constructor(store: ResourceStore<StoredBinding>, cpu: Pick<CpuScheduler, "steps">, limits: Limits = DEFAULT_LIMITS) {
    this.#store = store;
    this.#cpu = cpu;
    this.#room = new BindingRoom(
      limits,
      (entry) => this.#moved(entry),
      (namespace, work) => void cpu.steps(namespace, work),
    );
    store.keepBy({
      put: (entry) => {
        this.#entries.set(entry.object.metadata.uid, entry);
        this.#protections.put(entry.object);
        this.#room.put(entry);
        // Page by page: for all bindings at once, it takes long.
        if (!this.#hasSynced) this.#claim(entry.object);
      },
      removed: (entry) => {
        const { uid } = entry.object.metadata;
        if (this.#entries.get(uid) === entry) {
          this.#entries.delete(uid);
          this.#protections.removed(uid);
        }
        this.#room.removed(entry);
      },
      dropped: ({ object }) => {
        if (this.#hasSynced) return;
        const key = bindingKey(object);
        this.#claims.remove(key);
        void this.#update(key);
      },
    });
    store.listen({
      gone: (key, binding) => {
        const last = asRecorded(binding);
        for (const each of this.#listeners) each.gone(key, last);
      },
      changed: (key, binding) => {
        this.#changed([key]);
        this.#claim(binding);
      },
      synced: () => {
        this.#hasSynced = true;
        const { all } = store;
        this.#changed(all.map(bindingKey), "resync");
      },
    });
  }

  /** Listeners are called in the order in which they were added. */
  listen(listener: BindingListener): void {
    this.#listeners.push(listener);
  }

  get(key: string): SecretBinding | undefined {
    const stored = this.#store.get(key);
    if (stored === undefined) return undefined;
    if (this.#last?.stored !== stored) this.#last = { stored, binding: asRecorded(stored) };
    return this.#last.binding;
  }

  /** Which limit a binding exceeds. A stub that exceeds none can be restored. */
  excessOf(key: string): Excess | undefined {
    const entry = this.#store.entryOf(key);
    return entry && this.#room.excessOf(entry);
  }

  /** Keeps the whole binding in place of its stub, if there is room and the watch shows this version. Returns whether it is kept. */
  restore(binding: StoredBinding): boolean {
    const { uid, resourceVersion } = binding.metadata;
    const entry = this.#store.entryOf(bindingKey(binding));
    if (entry === undefined || entry.object.metadata.uid !== uid || entry.resourceVersion !== resourceVersion)
      return false;
    entry.object = withoutManagedFields(binding);
    this.#room.put(entry);
    if (isStub(entry.object)) return false;
    this.#claim(entry.object);
    return true;
  }

  /** The bindings of a namespace, by name. */
  in(namespace: string): Map<string, SecretBinding> {
    const own = this.#store.all.filter(({ metadata }) => metadata.namespace === namespace);
    return new Map(
      own.flatMap(({ metadata }) => this.get(bindingKey({ metadata })) ?? []).map((each) => [each.metadata.name, each]),
    );
  }

  /** Every binding, as the watch has shown it. */
  get all(): StoredBinding[] {
    return this.#store.all;
  }

  /** The key of the binding with that uid. Undefined if no watched binding has it. */
  keyOf(uid: string): string | undefined {
    const found = this.#entries.get(uid);
    return found && bindingKey(found.object);
  }

  /** The names of the bindings that protect a Secret or ConfigMap, in order. */
  protecting(ref: ObjectRef): string[] {
    return this.#protections.of(ref);
  }

  /** Uses the API server's answer to our own write as the binding's state until the watch has caught up. Returns the binding. */
  wrote(binding: StoredBinding): SecretBinding {
    const before = this.#store.entryOf(bindingKey(binding))?.object;
    this.#store.wrote(before !== undefined && isStub(before) ? stubOf(binding) : binding);
    return asRecorded(binding);
  }

  /** Claims of other bindings on an object that may keep the given binding from writing it. Yields where it may be interrupted. */
  competingClaims(
    { metadata }: SecretBinding,
    ref: ObjectRef,
    paths: readonly PathList[],
  ): Generator<void, CompetingClaim[]> {
    const createdAt = metadata.creationTimestamp ?? "";
    return this.#claims.competing({ key: bindingKey({ metadata }), createdAt }, ref, paths);
  }

  /** Records the objects that a binding's targets resolve to, for bindings that share an object. */
  async resolved(key: string, targets: readonly ResolvedTarget[]): Promise<void> {
    this.#claims.resolved(key, targets);
    // An update that runs already may be of an earlier state.
    for (let updates = 0; updates < 2; updates++) await this.#update(key);
  }

  /** Removes the claims of deleted bindings of this name, once all their fields are released. */
  released(key: string): void {
    if (this.#store.get(key) !== undefined) return;
    this.#claims.remove(key);
    void this.#update(key);
  }

  get state(): StreamState {
    return this.#store.state;
  }

  start(): void {
    this.#store.start();
  }

  stop(): Promise<void> {
    return this.#store.stop();
  }

  /** A binding lost its room, or has room again. */
  #moved({ object }: Entry<StoredBinding>): void {
    this.#claim(object);
    // The end of the first list reports every binding.
    if (this.#hasSynced) this.#changed([bindingKey(object)]);
  }

  #claim(binding: StoredBinding): void {
    this.#claims.put(binding);
    void this.#update(bindingKey(binding));
  }

  /**
   * Updates the claims of a binding, on the share of its namespace. Before the first list is complete, all bindings count: they are updated
   * at once, and the end of the list reports each. What changes during an update is for the next one. Returns the running update.
   */
  #update(key: string): Promise<void> | undefined {
    if (!this.#hasSynced) return void finish(this.#claims.update(key, false));
    const running = this.#updates.get(key);
    if (running !== undefined || !this.#claims.isDue(key)) return running;
    const update = this.#cpu.steps(namespaceIn(key), this.#updated(key)).then(() => {
      this.#updates.delete(key);
      void this.#update(key);
    });
    this.#updates.set(key, update);
    return update;
  }

  *#updated(key: string): Generator<void, void> {
    for (const concerned of yield* this.#claims.update(key)) {
      yield;
      this.#changed([concerned]);
    }
  }

  #changed(keys: Iterable<string>, cause: "change" | "resync" = "change"): void {
    for (const key of keys) for (const each of this.#listeners) each.changed(key, cause);
  }
}
