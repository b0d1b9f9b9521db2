/** What the controller knows of a composition: how it was compiled, and what became of each of its claims. */
import type { Resource } from "../../apimachinery/objects.ts";
import type { Problem } from "../../apimachinery/problem.ts";
import type { CompiledComposition } from "../../composition/compile.ts";
import type { MadeBinding } from "../../composition/made-binding.ts";
import type { Identity } from "../../kube/identity.ts";
import type { GeneratedBindings } from "../generated-bindings.ts";

/** What became of a claim. */
export interface ClaimRecord {
  readonly uid: string;
  /** The bindings that it has to have, by their keys. */
  readonly desired: ReadonlyMap<string, MadeBinding>;
  /** The entries whose bindings stay as they are, since it is not known how they have to be. */
  readonly held: ReadonlySet<string>;
  /** What keeps its bindings from being made, or a patch from being written to the claim. */
  readonly problems: readonly Problem[];
}

/** A composition that can be carried out. */
export interface AcceptedComposition {
  readonly generation: number;
  readonly compiled: CompiledComposition;
  readonly resource: Resource;
  readonly identity: Identity;
  readonly generated: GeneratedBindings<MadeBinding>;
}

/** A binding that was made for a claim. */
export interface OwnBinding {
  readonly uid: string;
  /** The key of the claim. */
  readonly claim: string;
  readonly claimUID: string;
}

export class CompositionState {
  /** As it was accepted last. */
  accepted: AcceptedComposition | undefined;
  /** Why it is not accepted as it is now. While there is one, nothing is made, changed or deleted. */
  problem: Problem | undefined;
  /** Claims are looked at, and nothing is written. */
  isSuspended = false;
  /** Whether the claims that are there have been listed, and added to the queue. */
  isListed = false;
  /** By the keys of claims. */
  readonly records = new Map<string, ClaimRecord>();
  /** Claims that are gone, and why their bindings can't be deleted. */
  readonly leftovers = new Map<string, Problem>();
  /** Claims that have not been reconciled since the composition changed, or since they were listed. */
  readonly pending = new Set<string>();
  /** Its bindings by their keys, so that one is known still when its labels are changed or removed. */
  readonly own = new Map<string, OwnBinding>();
  /** Whether it has been decided if the composition is carried out. */
  isConsidered = false;
  /** Whether a claim is about to be looked at. */
  isComing(claim: string): boolean {
    return !this.isConsidered || (this.isActive && (!this.isListed || this.pending.has(claim)));
  }
  /** Whether claims are reconciled at all. */
  get isActive(): boolean {
    return this.accepted !== undefined && this.problem === undefined;
  }
}
