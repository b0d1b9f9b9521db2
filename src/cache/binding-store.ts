/** The SecretBindings of the cluster, or of a namespace, come in by one watch; what each says now goes out, writes of our own included. */

import { bindingKey, type SecretBinding, type StoredBinding } from "../api/binding.ts";
import { asRecorded } from "../api/status-records.ts";
import type { ObjectRef, Resource } from "../apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import type { ApiError } from "../kube/api-error.ts";
import { CONTROLLER } from "../kube/identity.ts";
import { ListWatch } from "../kube/list-watch.ts";
import type { Transport } from "../kube/transport.ts";
import { type Claim, Claims, type Named } from "./field-claims.ts";
import { Reflector, type RestartReason, type StreamState } from "./reflector.ts";

interface Kept {
  resourceVersion: string;
  binding: StoredBinding;
}

export interface BindingStoreEvents {
  /**
   * A binding is new or changed, or another one whose objects are its own too; as a resync, called for every binding when
   * the stream is in step.
   */
  changed(key: string, cause: "change" | "resync"): void;
  /** A binding is gone, also if another of its name is there; this is how it last was. */
  gone(key: string, binding: SecretBinding): void;
  /** SecretBindings can't be listed: no CRD, or no right. It is tried again. */
  failed(error: ApiError): void;
  restarted(resource: Resource, reason: RestartReason): void;
}

export class BindingStore {
  readonly #reflector: Reflector<Kept>;
  readonly #events: BindingStoreEvents;
  readonly #claims = new Claims();
  /** What the server answered to writes of ours that the watch has not brought yet. */
  readonly #written = new Map<string, StoredBinding>();

  /** Of all namespaces, unless one is given. */
  constructor(transport: Transport, events: BindingStoreEvents, namespace?: string) {
    this.#events = events;
    const where = namespace === undefined ? {} : { namespace };
    const source = new ListWatch(transport, CONTROLLER, { resource: SECRET_BINDINGS, form: "whole", ...where });
    this.#reflector = new Reflector<Kept>(source, {
      keep: (object) => ({
        resourceVersion: object.metadata.resourceVersion,
        binding: withoutManagers(object as unknown as StoredBinding),
      }),
      changed: (key, after, before) => {
        if (after === undefined) this.#written.delete(key);
        const isAnother = before?.binding.metadata.uid !== after?.binding.metadata.uid;
        if (before !== undefined && isAnother) events.gone(key, asRecorded(before.binding));
        if (after !== undefined) events.changed(key, "change");
        if (before !== undefined && isAnother) this.#tell(this.#claims.remove(key));
        if (after !== undefined) this.#tell(this.#claims.put(after.binding));
      },
      stateChanged: (state) => {
        if (state.phase === "failed") events.failed(state.error);
        if (state.phase !== "synced") return;
        for (const { binding } of this.#reflector.values()) this.#claims.put(binding);
        for (const { binding } of this.#reflector.values()) events.changed(bindingKey(binding), "resync");
      },
      restarted: (reason) => events.restarted(SECRET_BINDINGS, reason),
    });
  }

  get(key: string): SecretBinding | undefined {
    const watched = this.#reflector.get(key)?.binding;
    const written = this.#written.get(key);
    if (watched === undefined) return undefined;
    if (written !== undefined && isNewer(written, watched)) return asRecorded(written);
    this.#written.delete(key);
    return asRecorded(watched);
  }

  /** Every binding as the watch has brought it. */
  get all(): StoredBinding[] {
    return [...this.#reflector.values()].map(({ binding }) => binding);
  }

  /**
   * Takes the answer to a write of ours for the binding's state until the watch has caught up. The last write to a deleted
   * binding may be answered after the watch said that it is gone.
   */
  wrote(binding: StoredBinding): SecretBinding {
    const key = bindingKey(binding);
    if (this.#reflector.get(key) !== undefined) this.#written.set(key, withoutManagers(binding));
    return asRecorded(binding);
  }

  /** What older bindings name, and hold, of an object where a binding has something to write. */
  olderClaims({ metadata }: SecretBinding, ref: ObjectRef, paths: Iterable<string>): Claim[] {
    const createdAt = metadata.creationTimestamp ?? "";
    return this.#claims.older({ key: bindingKey({ metadata }), createdAt }, ref, paths);
  }

  /** Takes the objects that the targets of a binding are, for those who share one. */
  resolved(key: string, named: readonly Named[]): void {
    this.#tell(this.#claims.resolved(key, named));
  }

  get state(): StreamState {
    return this.#reflector.stateOf(SECRET_BINDINGS);
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    return this.#reflector.stop();
  }

  #tell(concerned: ReadonlySet<string>): void {
    for (const key of concerned) this.#events.changed(key, "change");
  }
}

/** Half of a binding says who set its fields. A status that is written without that leaves it as it is. */
function withoutManagers(binding: StoredBinding): StoredBinding {
  const { managedFields: _, ...metadata } = binding.metadata;
  return { ...binding, metadata };
}

/** Of one object, resourceVersions grow; of an object made anew under the same name they do too. */
function isNewer(a: StoredBinding, b: StoredBinding): boolean {
  return BigInt(a.metadata.resourceVersion) > BigInt(b.metadata.resourceVersion);
}
