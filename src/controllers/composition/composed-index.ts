/** Finds the bindings that are labelled as composed for a claim of a composition. The labels prove nothing. */
import { namespaceIn, type SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import { getOrInsert, SetsByKey } from "../../apimachinery/maps.ts";
import type { BindingStore } from "../../cache/binding-store.ts";
import { claimKey, parseKey } from "./keys.ts";

/** Called when a binding of a claim is created, changed or deleted. */
type ClaimHandler = (composition: string, claim: string, key: string) => void;

/**
 * How many bindings of a namespace count for one claim, four times as many as a composition makes: anybody may label a binding for the claims
 * of others.
 */
const MOST = 256;

export class ComposedIndex {
  readonly #bindings: Pick<BindingStore, "get" | "listen">;
  readonly #changed: ClaimHandler;
  /** The claims of each composition that labels of bindings name. */
  readonly #claims = new SetsByKey<string, string>();
  /** Keys of bindings, by the claimKey of the claim in their labels, and by their namespace. */
  readonly #keys = new Map<string, SetsByKey<string, string>>();
  /** The claimKey in the labels of a binding, by its key. */
  readonly #labelled = new Map<string, string>();
  /** The claims that want a binding of that key, whatever its labels say. */
  readonly #wanting = new SetsByKey<string, string>();
  /** The keys that a claim wants. */
  readonly #wanted = new Map<string, readonly string[]>();

  constructor(bindings: Pick<BindingStore, "get" | "listen">, changed: ClaimHandler) {
    this.#bindings = bindings;
    this.#changed = changed;
    bindings.listen({
      changed: (key) => {
        const before = this.#labelled.get(key);
        const now = claimIn(bindings.get(key));
        this.#put(key, now);
        this.#notify(key, before, now);
      },
      gone: (key, binding) => {
        const before = this.#labelled.get(key) ?? claimIn(binding);
        if (bindings.get(key) === undefined) this.#put(key, undefined);
        this.#notify(key, before);
      },
    });
  }

  /** Sets the keys of the bindings that a claim wants. The claim is notified of changes of these bindings too. */
  want(composition: string, claim: string, keys: readonly string[]): void {
    const id = claimKey(composition, claim);
    for (const key of this.#wanted.get(id) ?? []) this.#wanting.remove(key, id);
    if (keys.length === 0) return void this.#wanted.delete(id);
    this.#wanted.set(id, keys);
    for (const key of keys) this.#wanting.add(key, id);
  }

  /** Notifies the claims in the labels of a binding, and those that want it. */
  #notify(key: string, ...labelled: (string | undefined)[]): void {
    for (const id of new Set([...labelled, ...(this.#wanting.get(key) ?? [])]))
      if (id !== undefined) this.#changed(...placeIn(id), key);
  }

  /** The keys of all claims that the labels of bindings name for the composition. */
  claimsOf(composition: string): IterableIterator<string> {
    return this.#claims.get(composition)?.values() ?? [].values();
  }

  /** By default at most 256 of each namespace: others count when these are deleted. */
  bindingsOf(composition: string, claim: string, most = MOST): SecretBinding[] {
    const found: SecretBinding[] = [];
    for (const keys of this.#keys.get(claimKey(composition, claim))?.values() ?? []) {
      let left = most;
      for (const key of keys) {
        if (left-- === 0) break;
        const binding = this.#bindings.get(key);
        if (binding !== undefined) found.push(binding);
      }
    }
    return found;
  }

  /** All bindings of the composition, however many have the labels. */
  allOf(composition: string): SecretBinding[] {
    return [...this.claimsOf(composition)].flatMap((claim) => this.bindingsOf(composition, claim, Infinity));
  }

  #put(key: string, now: string | undefined): void {
    const before = this.#labelled.get(key);
    if (before === now) return;
    const namespace = namespaceIn(key);
    if (before !== undefined) {
      const keys = this.#keys.get(before);
      keys?.remove(namespace, key);
      if (keys?.size === 0) {
        this.#keys.delete(before);
        this.#claims.remove(...placeIn(before));
      }
    }
    if (now === undefined) return void this.#labelled.delete(key);
    this.#labelled.set(key, now);
    this.#claims.add(...placeIn(now));
    getOrInsert(this.#keys, now, () => new SetsByKey<string, string>()).add(namespace, key);
  }
}

/** The composition and the claim of a claimKey. */
function placeIn(id: string): [composition: string, claim: string] {
  const { composition, claim = "" } = parseKey(id);
  return [composition, claim];
}

/** The claimKey in the labels of a binding. */
function claimIn(binding: SecretBinding | undefined): string | undefined {
  const from = binding && composedFrom(binding);
  return from && claimKey(from.composition, from.claim);
}
