/**
 * Releases deleted bindings, each exactly once: a new binding of the same name has the same field manager, so a second release
 * could take away its fields.
 */
import { bindingKey, type SecretBinding, type TargetStatus } from "../../api/binding.ts";
import { isStub } from "../../api/stub.ts";
import type { StillHeld } from "../../targets/release.ts";

/**
 * Releases what `left` records of a binding that is known to be deleted since `since` (ms). Returns what is still to
 * release.
 */
export type ReleaseLeft = (binding: SecretBinding, left: readonly TargetStatus[], since: number) => Promise<StillHeld>;

interface Deletion {
  readonly binding: SecretBinding;
  readonly since: number;
  /** Undefined for the stub of a binding: the records are in the status of the whole binding. */
  left: readonly TargetStatus[] | undefined;
}

export class Deletions {
  readonly #release: ReleaseLeft;
  /** Bindings that their finalizer keeps, by uid. */
  readonly #held = new Map<string, Deletion>();
  /** Bindings that no longer exist and are not fully released, by key. Several may have had the same name. */
  readonly #gone = new Map<string, Deletion[]>();

  constructor(release: ReleaseLeft) {
    this.#release = release;
  }

  /** Records a binding that no longer exists. The caller requeues its key. */
  gone(binding: SecretBinding): void {
    const { uid } = binding.metadata;
    const deletion = this.#held.get(uid) ?? begun(binding);
    this.#held.delete(uid);
    // The records of a stub went with the binding.
    if ((deletion.left ?? []).length === 0) return;
    const key = bindingKey(binding);
    this.#gone.set(key, [...(this.#gone.get(key) ?? []), deletion]);
  }

  /**
   * Releases a binding that still exists. Its finalizer may be removed when no records are left. `whole` is the binding itself, if only its
   * stub is kept.
   */
  async releaseHeld(binding: SecretBinding, whole = binding): Promise<StillHeld> {
    const { uid } = binding.metadata;
    const deletion = this.#held.get(uid) ?? begun(binding);
    // Kept until the binding is gone: `gone` then knows that nothing is left to release.
    this.#held.set(uid, deletion);
    if (!isStub(binding) || isDone(deletion)) return this.#continue(deletion, binding);
    const held = await this.#release(whole, whole.status?.targets ?? [], deletion.since);
    deletion.left = held.records.length === 0 ? [] : undefined;
    return held;
  }

  /** One of the deleted bindings of this name that are not released yet. */
  lastOf(key: string): SecretBinding | undefined {
    return this.#gone.get(key)?.at(-1)?.binding;
  }

  /** Releases what deleted bindings of this name wrote. Returns whether all of it is released. */
  async releaseGone(key: string): Promise<boolean> {
    for (const deletion of this.#gone.get(key) ?? []) await this.#continue(deletion, deletion.binding);
    const unfinished = (this.#gone.get(key) ?? []).filter((each) => !isDone(each));
    if (unfinished.length > 0) this.#gone.set(key, unfinished);
    else this.#gone.delete(key);
    return unfinished.length === 0;
  }

  /** `binding` is the present one: its spec may have changed since the deletion. */
  async #continue(deletion: Deletion, binding: SecretBinding): Promise<StillHeld> {
    const { left = [], since } = deletion;
    if (left.length === 0) return { records: [] };
    const held = await this.#release(binding, left, since);
    deletion.left = held.records;
    return held;
  }
}

function begun(binding: SecretBinding): Deletion {
  return { binding, since: Date.now(), left: isStub(binding) ? undefined : (binding.status?.targets ?? []) };
}

const isDone = ({ left }: Deletion) => left?.length === 0;
