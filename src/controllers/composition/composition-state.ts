/** What the controller knows of a composition: its compiled form, and the state of each of its claims. */
import { bindingKey, type SecretBinding } from "../../api/binding.ts";
import type { BindingComposition } from "../../api/composition.ts";
import { isRefreshRequested, refreshOf } from "../../api/refresh.ts";
import { Counts } from "../../apimachinery/maps.ts";
import type { Resource } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { CompiledComposition } from "../../composition/compile.ts";
import type { DesiredBinding } from "../../composition/made-binding.ts";
import type { Identity } from "../../kube/identity.ts";
import type { GeneratedBindings } from "../generated-bindings.ts";
import { placeOfClaim } from "./keys.ts";

/** The state of a claim. */
export interface ClaimRecord {
  readonly uid: string;
  /** The wanted bindings, by their keys. */
  readonly desired: ReadonlyMap<string, DesiredBinding>;
  /** The entries whose bindings are not changed, because their wanted state is not known. */
  readonly held: ReadonlySet<string>;
  /** Why bindings can't be created, or a patch can't be written to the claim. */
  readonly problems: readonly Problem[];
  /** The estimated size of the wanted bindings. */
  readonly size: number;
  /** It gets no binding, because its namespace exceeds a limit. */
  readonly isExcess?: true;
}

/** A composition that Inlay can process. */
export interface AcceptedComposition {
  readonly generation: number;
  readonly compiled: CompiledComposition;
  /** The names of all entries of the composition. */
  readonly entries: ReadonlySet<string>;
  readonly resource: Resource;
  /**
   * The preferred version of the kind, for owner references. The garbage collector deletes a binding if its owner's version is no longer
   * served and the collector has not noticed that yet.
   */
  readonly ownerApiVersion: string;
  readonly identity: Identity;
  readonly generated: GeneratedBindings<DesiredBinding>;
}

/** A binding that was composed for a claim. */
export interface OwnBinding {
  readonly uid: string;
  /** The key of the claim. */
  readonly claim: string;
  readonly claimUID: string;
}

export class CompositionState {
  /** The form that was accepted last. */
  accepted: AcceptedComposition | undefined;
  /** Why the present form is not accepted. While there is a problem, no binding is created, changed or deleted. */
  problem: Problem | undefined;
  /** Claims are read, and nothing is written. */
  isSuspended = false;
  /** The last text of the annotation inlay.dev/refresh for which all claims were queued. */
  refresh: string | undefined;
  /** Whether the existing claims have been listed and queued. */
  isListed = false;
  /** By the keys of claims. */
  readonly #records = new Map<string, ClaimRecord>();
  /** The estimated size of the wanted bindings, by the namespaces of claims. */
  readonly #sizes = new Counts();
  /** Deleted claims, with the reason why their bindings can't be deleted. */
  readonly leftovers = new Map<string, Problem>();
  /** Claims that have not been reconciled since the composition changed or since they were listed. */
  readonly pending = new Set<string>();
  /** The composition's bindings by their keys. A binding stays known when its labels are changed or removed. */
  readonly own = new Map<string, OwnBinding>();

  get records(): ReadonlyMap<string, ClaimRecord> {
    return this.#records;
  }

  /** What is known of a binding, whatever its present labels say. */
  ownOf({ metadata }: SecretBinding): OwnBinding | undefined {
    const known = this.own.get(bindingKey({ metadata }));
    return known?.uid === metadata.uid ? known : undefined;
  }

  /** Keeps the state of a claim, or forgets it. */
  record(claim: string, record: ClaimRecord | undefined): void {
    const { size = 0 } = this.#records.get(claim) ?? {};
    this.#sizes.add(placeOfClaim(claim).namespace, (record?.size ?? 0) - size);
    if (record === undefined) this.#records.delete(claim);
    else this.#records.set(claim, record);
  }

  /** The estimated size of all wanted bindings of the claim's namespace, if those of the claim have that size. */
  sizeWith(claim: string, size: number): number {
    return this.#sizes.get(placeOfClaim(claim).namespace) - (this.#records.get(claim)?.size ?? 0) + size;
  }

  /** Whether the present generation is accepted, and there is no new request to reconcile it. */
  isKnown(composition: BindingComposition): boolean {
    const { generation, deletionTimestamp } = composition.metadata;
    if (deletionTimestamp !== undefined || this.#isRequested(composition)) return false;
    return this.problem === undefined && this.accepted?.generation === generation;
  }
  /** Makes all claims be queued again if the annotation inlay.dev/refresh has a new text. Returns whether it has. */
  noticeRefresh(composition: BindingComposition): boolean {
    const isNew = this.#isRequested(composition);
    if (isNew) this.isListed = false;
    this.refresh = refreshOf(composition);
    return isNew;
  }
  #isRequested(composition: BindingComposition): boolean {
    return isRefreshRequested(composition) && this.refresh !== refreshOf(composition);
  }
  /** Whether the composition has been reconciled at least once. */
  isConsidered = false;
  /** Whether a claim is about to be reconciled. */
  isComing(claim: string): boolean {
    return !this.isConsidered || (this.isActive && (!this.isListed || this.pending.has(claim)));
  }
  /** Whether claims are reconciled at all. */
  get isActive(): boolean {
    return this.accepted !== undefined && this.problem === undefined;
  }
}
