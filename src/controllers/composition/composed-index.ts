/** Finds the bindings that are labelled as composed for a claim of a composition. The labels prove nothing. */
import { namespaceIn, type SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import { getOrInsert, SetsByKey } from "../../apimachinery/maps.ts";
import type { BindingStore } from "../../cache/binding-store.ts";

interface Place {
  readonly composition: string;
  readonly claim: string;
}

/** Called when a binding of a claim is created, changed or deleted. */
type ClaimHandler = (composition: string, claim: string, key: string) => void;

/**
 * How many bindings of a namespace count for one claim, four times as many as a composition makes: anybody may label a binding for the claims
 * of others.
 */
const MOST = 256;

export class ComposedIndex {
  readonly #bindings: Pick<BindingStore, "get" | "listen">;
  /** Keys of bindings, by composition, claim, and the namespace of the binding. */
  readonly #keys = new Map<string, Map<string, SetsByKey<string, string>>>();
  /** The place in the index, by the key of a binding. */
  readonly #places = new Map<string, Place>();
  /** The claims that want a binding of that key, whatever its labels say. */
  readonly #wanted = new Map<string, Map<string, Place>>();
  /** The keys that a claim wants, by composition and claim. */
  readonly #wants = new Map<string, readonly string[]>();

  constructor(bindings: Pick<BindingStore, "get" | "listen">, changed: ClaimHandler) {
    this.#bindings = bindings;
    bindings.listen({
      changed: (key) => {
        const binding = bindings.get(key);
        const before = this.#places.get(key);
        const now = binding && composedFrom(binding);
        this.#put(key, now);
        if (before !== undefined && (before.composition !== now?.composition || before.claim !== now.claim))
          changed(before.composition, before.claim, key);
        if (now !== undefined) changed(now.composition, now.claim, key);
        this.#notifyWanting(key, now, changed);
      },
      gone: (key, binding) => {
        const place = this.#places.get(key) ?? composedFrom(binding);
        if (bindings.get(key) === undefined) this.#put(key, undefined);
        if (place !== undefined) changed(place.composition, place.claim, key);
        this.#notifyWanting(key, place, changed);
      },
    });
  }

  /** Sets the keys of the bindings that a claim wants. The claim is notified of changes of these bindings too. */
  want(composition: string, claim: string, keys: readonly string[]): void {
    const id = `${composition}|${claim}`;
    for (const key of this.#wants.get(id) ?? []) {
      const wanting = this.#wanted.get(key);
      wanting?.delete(id);
      if (wanting?.size === 0) this.#wanted.delete(key);
    }
    if (keys.length === 0) return void this.#wants.delete(id);
    this.#wants.set(id, keys);
    for (const key of keys) this.#wanted.set(key, (this.#wanted.get(key) ?? new Map()).set(id, { composition, claim }));
  }

  #notifyWanting(key: string, notified: Place | undefined, changed: ClaimHandler): void {
    for (const { composition, claim } of this.#wanted.get(key)?.values() ?? [])
      if (composition !== notified?.composition || claim !== notified.claim) changed(composition, claim, key);
  }

  /** The keys of all claims that the labels of bindings name for the composition. */
  claimsOf(composition: string): IterableIterator<string> {
    return this.#keys.get(composition)?.keys() ?? [].values();
  }

  /** By default at most 256 of each namespace: others count when these are deleted. */
  bindingsOf(composition: string, claim: string, most = MOST): SecretBinding[] {
    const found: SecretBinding[] = [];
    for (const keys of this.#keys.get(composition)?.get(claim)?.values() ?? []) {
      let left = most;
      for (const key of keys) {
        if (left-- === 0) break;
        const binding = this.#bindings.get(key);
        if (binding !== undefined) found.push(binding);
      }
    }
    return found;
  }

  #put(key: string, now: Place | undefined): void {
    const before = this.#places.get(key);
    if (before?.composition === now?.composition && before?.claim === now?.claim) return;
    const namespace = namespaceIn(key);
    if (before !== undefined) {
      const claims = this.#keys.get(before.composition);
      const namespaces = claims?.get(before.claim);
      namespaces?.remove(namespace, key);
      if (namespaces?.size === 0) claims?.delete(before.claim);
      if (claims?.size === 0) this.#keys.delete(before.composition);
    }
    if (now === undefined) return void this.#places.delete(key);
    const { composition, claim } = now;
    this.#places.set(key, { composition, claim });
    const claims = getOrInsert(this.#keys, composition, () => new Map<string, SetsByKey<string, string>>());
    getOrInsert(claims, claim, () => new SetsByKey<string, string>()).add(namespace, key);
  }
}
