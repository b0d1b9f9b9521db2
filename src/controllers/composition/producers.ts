/**
 * Answers which composition generates a binding at the moment, from the present claims and never from the binding's own labels.
 * Calls back when an answer that was not known may be known.
 */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import { composedFrom } from "../../api/composed.ts";
import { namespaceOfClaim } from "../../composition/claim.ts";
import type { ProducedBy } from "../../sources/grant-rules.ts";
import type { Claims } from "./claims.ts";
import type { ComposedIndex } from "./composed-index.ts";
import type { CompositionState } from "./composition-state.ts";

interface Services {
  /** Undefined while the list of compositions is not complete. */
  exists(composition: string): boolean | undefined;
  stateOf(composition: string): CompositionState | undefined;
  claims: Pick<Claims, "get">;
  index: Pick<ComposedIndex, "bindingsOf" | "claimsOf">;
}

/** Each binding is called, however many have the labels. */
const ALL = Number.POSITIVE_INFINITY;

export class Producers {
  readonly #services: Services;
  /** By composition, the bindings whose answer was not known when it was asked for. */
  readonly #asked = new Map<string, Set<string>>();
  #changed: (key: string) => void = () => {};

  constructor(services: Services) {
    this.#services = services;
  }

  onChange(changed: (key: string) => void): void {
    this.#changed = changed;
  }

  /**
   * Also `unknown` while the binding differs from the wanted one, and `pending` until its claim is reconciled or while Inlay
   * updates it.
   */
  of(binding: SecretBinding): ProducedBy {
    const from = composedFrom(binding);
    if (from === undefined || this.#services.exists(from.composition) === false) return "none";
    const { composition } = from;
    const key = bindingKey(binding);
    const answer = this.#composes(binding, key, from);
    if (typeof answer === "object" || answer === "none") return answer;
    this.#asked.set(composition, (this.#asked.get(composition) ?? new Set()).add(key));
    return answer;
  }

  /** Call it when a claim was reconciled. */
  known(composition: string, claim: string): void {
    const asked = this.#asked.get(composition);
    if (asked === undefined) return;
    for (const binding of this.#services.index.bindingsOf(composition, claim, ALL))
      if (asked.delete(bindingKey(binding))) this.#changed(bindingKey(binding));
  }

  /** Call it when the list of compositions is complete. */
  listed(): void {
    for (const composition of [...this.#asked.keys()])
      if (this.#services.exists(composition) === false) this.considered(composition);
  }

  /** Call it when the composition was reconciled: its bindings need not wait any longer. */
  considered(composition: string): void {
    const asked = this.#asked.get(composition) ?? [];
    this.#asked.delete(composition);
    for (const key of asked) this.#changed(key);
  }

  /** Call it when the composition is deleted. From then on, no composition generates the bindings that it left. */
  gone(composition: string): void {
    this.#asked.delete(composition);
    const { index } = this.#services;
    for (const claim of index.claimsOf(composition))
      for (const binding of index.bindingsOf(composition, claim, ALL)) this.#changed(bindingKey(binding));
  }

  bindingGone(composition: string, key: string): void {
    this.#asked.get(composition)?.delete(key);
  }

  #composes(
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
