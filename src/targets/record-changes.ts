/** What is to stand in a binding itself comes in: its status and its finalizer; the binding as it is then goes out. */

import {
  bindingKey,
  FINALIZER,
  type SecretBinding,
  type Status,
  type StoredBinding,
  type TargetStatus,
} from "../api/binding.ts";
import { CONTROLLER_MANAGER } from "../api/field-manager.ts";
import { storedStatus } from "../api/status-records.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import { SECRET_BINDINGS } from "../apimachinery/resources.ts";
import { isSameStatus } from "../controllers/binding/conditions.ts";
import { isStatus } from "../kube/api-error.ts";
import { CONTROLLER } from "../kube/identity.ts";
import type { Parts } from "../parts.ts";

export class Bookkeeping {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async writeStatus(binding: SecretBinding, status: Status): Promise<SecretBinding> {
    if (isSameStatus(binding.status, status)) return binding;
    const { client, bindings } = this.#parts;
    const stored: StoredBinding = { ...binding, status: storedStatus(status) };
    return bindings.wrote(await client.replaceStatus(CONTROLLER, refOf(binding), stored, CONTROLLER_MANAGER));
  }

  /** Tells what is wrong when it begins. */
  tell(binding: SecretBinding, status: Status): void {
    const { events, log } = this.#parts;
    const [before, now] = [binding.status?.conditions?.[0], status.conditions?.[0]];
    if (now?.status !== "False" || (before?.reason === now.reason && before.message === now.message)) return;
    events.record(binding, { type: "Warning", reason: now.reason, action: "Sync", note: now.message });
    log.warn({ binding: bindingKey(binding), reason: now.reason }, now.message);
  }

  /** A binding that removes what it wrote holds its own deletion until that is done; others hold nothing. */
  async withFinalizer(binding: SecretBinding, records: readonly TargetStatus[]): Promise<SecretBinding> {
    const removes = records.some(({ onRelease }) => onRelease === "Remove");
    const finalizers = binding.metadata.finalizers ?? [];
    if (removes === finalizers.includes(FINALIZER)) return binding;
    const others = finalizers.filter((each) => each !== FINALIZER);
    return this.#setFinalizers(binding, removes ? [...others, FINALIZER] : others);
  }

  /** Lets a binding go that is being deleted. */
  async letGo(binding: SecretBinding): Promise<void> {
    const finalizers = binding.metadata.finalizers ?? [];
    try {
      await this.#setFinalizers(
        binding,
        finalizers.filter((each) => each !== FINALIZER),
      );
    } catch (error) {
      if (!isStatus(error, 404)) throw error;
    }
  }

  async #setFinalizers(binding: SecretBinding, finalizers: string[]): Promise<SecretBinding> {
    const { client, bindings } = this.#parts;
    const patch = { metadata: { resourceVersion: binding.metadata.resourceVersion, finalizers } };
    return bindings.wrote(await client.mergePatch(CONTROLLER, refOf(binding), patch, CONTROLLER_MANAGER));
  }
}

function refOf({ metadata: { namespace, name } }: SecretBinding): ObjectRef {
  return { resource: SECRET_BINDINGS, name, ...(namespace !== undefined && { namespace }) };
}
