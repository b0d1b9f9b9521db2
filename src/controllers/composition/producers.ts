/**
 * Says which composition makes a binding at the moment, by what its claims come to and never by what the binding says of itself;
 * and calls when an answer that was not known may be.
 */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import { namespaceOfClaim } from "../../composition/claim.ts";
import type { ProducedBy } from "../../sources/grant-rules.ts";
import type { Claims } from "./claims.ts";
import type { ComposedIndex } from "./composed-index.ts";
import type { CompositionState } from "./composition-state.ts";

interface Services {
  /** Undefined while it is not known which compositions there are. */
  exists(composition: string): boolean | undefined;
  stateOf(composition: string): CompositionState | undefined;
  claims: Pick<Claims, "get">;
  index: Pick<ComposedIndex, "bindingsOf" | "claimsOf">;
}

export class Producers {
  readonly #services: Services;
  /** By composition, the bindings of which it was asked when that was not known. */
  readonly #asked = new Map<string, Set<string>>();
  #changed: (key: string) => void = () => {};

  constructor(services: Services) {
    this.#services = services;
  }

  onChange(changed: (key: string) => void): void {
    this.#changed = changed;
  }

  /** `unknown` also while the binding differs from what it has to be, `pending` until its claim is looked at, or while Inlay updates it. */
  of(binding: SecretBinding): ProducedBy {
    const from = composedFrom(binding);
    if (from === undefined || this.#services.exists(from.composition) === false) return "none";
    const { composition } = from;
    const key = bindingKey(binding);
    const answer = this.#makes(binding, key, from);
    if (typeof answer === "object" || answer === "none") return answer;
    this.#asked.set(composition, (this.#asked.get(composition) ?? new Set()).add(key));
    return answer;
  }

  /** To be called when a claim was reconciled. */
  known(composition: string, claim: string): void {
    const asked = this.#asked.get(composition);
    if (asked === undefined) return;
    for (const binding of this.#services.index.bindingsOf(composition, claim))
      if (asked.delete(bindingKey(binding))) this.#changed(bindingKey(binding));
  }

  /** To be called when it is known which compositions there are. */
  listed(): void {
    for (const composition of [...this.#asked.keys()])
      if (this.#services.exists(composition) === false) this.considered(composition);
  }

  /** To be called when the composition was reconciled: what waited for that need not wait any more. */
  considered(composition: string): void {
    const asked = this.#asked.get(composition) ?? [];
    this.#asked.delete(composition);
    for (const key of asked) this.#changed(key);
  }

  /** To be called when the composition is gone. What it leaves, nothing makes any more. */
  gone(composition: string): void {
    this.#asked.delete(composition);
    const { index } = this.#services;
    for (const claim of index.claimsOf(composition))
      for (const binding of index.bindingsOf(composition, claim)) this.#changed(bindingKey(binding));
  }

  bindingGone(composition: string, key: string): void {
    this.#asked.get(composition)?.delete(key);
  }

  #makes(
    binding: SecretBinding,
    key: string,
    { composition, claim, template }: NonNullable<ReturnType<typeof composedFrom>>,
  ): ProducedBy {
    const state = this.#services.stateOf(composition);
    const record = state?.records.get(claim);
    if (record === undefined && (state === undefined || state.isComing(claim))) return "pending";
    if (record === undefined) return this.#services.claims.get(composition, claim) === "absent" ? "none" : "unknown";
    if (record.held.has(template)) return "unknown";
    const desired = record.desired.get(key);
    if (desired === undefined) return "none";
    const accepted = state?.accepted;
    if (state === undefined || accepted === undefined) return "unknown";
    const { generated } = accepted;
    const isUpdated = () => state.isActive && !state.isSuspended && generated.isUnderWay(claim, binding);
    if (!generated.isAsGenerated(binding, desired)) return isUpdated() ? "pending" : "unknown";
    const claimNamespace = namespaceOfClaim(desired.owner, accepted.compiled.kind);
    return { by: composition, ...(claimNamespace !== undefined && { claimNamespace }) };
  }
}
