/**
 * Deleted bindings come in, and whether all that they wrote is released goes out. What is released is not released again:
 * its place may be held by a binding of the same name that came since, under the same manager.
 */
import { bindingKey, type SecretBinding, type TargetStatus } from "../../api/binding.ts";

/** Releases what `left` records of a binding of which it is known since then that it is deleted; what could not be yet comes back. */
export type ReleaseLeft = (
  binding: SecretBinding,
  left: readonly TargetStatus[],
  since: number,
) => Promise<readonly TargetStatus[]>;

interface Deletion {
  readonly binding: SecretBinding;
  readonly since: number;
  left: readonly TargetStatus[];
}

export class Deletions {
  readonly #release: ReleaseLeft;
  /** Those that hold themselves by a finalizer, by uid. */
  readonly #held = new Map<string, Deletion>();
  /** Those that are gone and have something left to release, by key. Several of one name may go one after the other. */
  readonly #gone = new Map<string, Deletion[]>();

  constructor(release: ReleaseLeft) {
    this.#release = release;
  }

  /** Takes note of a binding that is gone; its key has to be reconciled once more. */
  gone(binding: SecretBinding): void {
    const { uid } = binding.metadata;
    const deletion = this.#held.get(uid) ?? begun(binding);
    this.#held.delete(uid);
    if (deletion.left.length === 0) return;
    const key = bindingKey(binding);
    this.#gone.set(key, [...(this.#gone.get(key) ?? []), deletion]);
  }

  /** Releases a binding that is there still. Says whether to let it go. */
  async releaseHeld(binding: SecretBinding): Promise<boolean> {
    const { uid } = binding.metadata;
    const deletion = this.#held.get(uid) ?? begun(binding);
    // Kept until it is gone: then this tells that nothing is left.
    this.#held.set(uid, deletion);
    return this.#goOn(deletion, binding);
  }

  /** Releases what bindings of this name wrote that are gone. Says whether nothing is left of them. */
  async releaseGone(key: string): Promise<boolean> {
    for (const deletion of this.#gone.get(key) ?? []) await this.#goOn(deletion, deletion.binding);
    const unfinished = (this.#gone.get(key) ?? []).filter(({ left }) => left.length > 0);
    if (unfinished.length > 0) this.#gone.set(key, unfinished);
    else this.#gone.delete(key);
    return unfinished.length === 0;
  }

  /** The binding as it is now: its spec may have changed since. */
  async #goOn(deletion: Deletion, binding: SecretBinding): Promise<boolean> {
    if (deletion.left.length > 0) deletion.left = await this.#release(binding, deletion.left, deletion.since);
    return deletion.left.length === 0;
  }
}

function begun(binding: SecretBinding): Deletion {
  return { binding, since: Date.now(), left: binding.status?.targets ?? [] };
}
