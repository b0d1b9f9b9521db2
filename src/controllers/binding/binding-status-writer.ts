/** Writes the status of SecretBindings. The selected objects that are in the same state share one entry of the status. */
import { FINALIZER, type SecretBinding, type Status, type StoredBinding } from "../../api/binding.ts";
import type { Installation } from "../../api/installation.ts";
import { storedStatus } from "../../api/status-records.ts";
import { SECRET_BINDINGS } from "../../apimachinery/resources.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import { StatusWriter } from "../status-writer.ts";
import { excessText } from "./too-large.ts";

export type BindingStatusWriter = StatusWriter<SecretBinding, StoredBinding>;

export function bindingStatusWriter(
  services: ConstructorParameters<typeof StatusWriter>[0] & {
    installation: Pick<Installation, "limits">;
    bindings: Pick<BindingStore, "wrote">;
  },
): BindingStatusWriter {
  return new StatusWriter<SecretBinding, StoredBinding>(services, {
    resource: SECRET_BINDINGS,
    finalizer: FINALIZER,
    logKey: "binding",
    encode: (binding, status) => ({ ...binding, status: storedStatus(status) }),
    excessOf: (stored) => excessText(stored, services.installation.limits),
    wrote: (answer) => services.bindings.wrote(answer),
  });
}

/** The status of a binding during a reconcile. Each write continues from the binding as the one before left it. */
export class StatusInProgress {
  readonly #writer: Pick<BindingStatusWriter, "setFinalizer" | "writeStatus">;
  #stored: SecretBinding;

  constructor(writer: Pick<BindingStatusWriter, "setFinalizer" | "writeStatus">, binding: SecretBinding) {
    this.#writer = writer;
    this.#stored = binding;
  }

  /** The binding as the last write left it. */
  get stored(): SecretBinding {
    return this.#stored;
  }

  async write(status: Status): Promise<void> {
    this.#stored = await this.#writer.writeStatus(this.#stored, status);
  }

  async setFinalizer(isSet: boolean): Promise<void> {
    this.#stored = await this.#writer.setFinalizer(this.#stored, isSet);
  }
}
