/** What `inlay explain` tells of a binding: the shape of its JSON, which others read too. Never a value. Types only. */
import type { Condition } from "../api/binding.ts";
import type { Pending, RolloutStatus, WorkloadStatus } from "../api/rollout.ts";

/** Whether something is there, as the user at hand sees it; the message says why he can't, or what is the matter. */
export interface ReadState {
  state: "Found" | "NotFound" | "Unreadable";
  message?: string;
}

export interface Explanation {
  binding: {
    namespace: string;
    name: string;
    generation?: number;
    observedGeneration?: number;
    suspended: boolean;
    deleting: boolean;
    /** What its labels say of how it was made. */
    madeBy?: { composition: string; claim: string };
  };
  account: ReadState & { name: string };
  sources: SourceExplanation[];
  targets: TargetExplanation[];
  rollout?: RolloutExplanation;
  conditions: Condition[];
  /** The last ones, the newest last. */
  events: ExplainedEvent[];
  /** Why there are no events to see. */
  eventsUnreadable?: string;
  /** The first thing that stands in the way, and what to do about it. */
  advice: Advice;
}

export interface SourceExplanation extends ReadState {
  /** As fields and templates call it. */
  source: string;
  kind: string;
  namespace?: string;
  name: string;
  optional: boolean;
  resourceVersion?: string;
  /** What the fields take of it: keys, paths of fields, or `*` for all. `present` is left out where it can't be known. */
  uses: { key: string; present?: boolean }[];
  /** Of a source from Vault: what is read, such as `data kv/registry/s3`, and how its VaultConnection is. */
  vault?: {
    reads: string;
    /** The condition of the VaultConnection. Left out where there is none, or it can't be seen. */
    ready?: Pick<Condition, "status" | "reason" | "message">;
    /** Of the server. */
    version?: string;
  };
  /**
   * Of a source that needs a SecretGrant: whether one lets the binding read it, and which. The message says where that goes by
   * the binding's label for its composition, which the controller does not go by.
   */
  grants?: ReadState & { names: string[] };
}

export interface TargetExplanation {
  apiVersion: string;
  kind: string;
  /** Whether it is what a selector matches. */
  selects: boolean;
  /** Whether the binding makes it. */
  creates: boolean;
  /** Which objects the binding takes over that it did not make, with `creates`. */
  adopts?: "Equal" | "Any";
  /** It is written after the rollout. */
  when?: "AfterRollout";
  fields: { path: string; from: string[] }[];
  objects: ObjectExplanation[];
  /** How many more objects it has, which are not looked at. */
  more: number;
  message?: string;
}

export interface ObjectExplanation extends ReadState {
  namespace?: string;
  name: string;
  /** What the binding's status says of it. */
  status?: { reason: string; message?: string };
  fields: {
    path: string;
    /** Whether the binding's record says that it holds the field. */
    held: boolean;
    /** Who holds it, by managedFields; left out where that can't be seen. */
    managers?: string[];
  }[];
}

/** Revision counts the rollouts that have ended; lastStartTime is when the last one began. */
export interface RolloutExplanation extends Partial<Pick<RolloutStatus, "revision" | "lastStartTime">> {
  suspended: boolean;
  /** In words: which workloads restart. */
  restarts: string[];
  /** The values that are compared, such as bucket/accessKeyID. Never the digests. */
  trackedValues: string[];
  /** The namespaces whose workloads can't be known. */
  unknownNamespaces?: string[];
  pending?: Pick<Pending, "firstChangeTime" | "startTime" | "reason" | "message"> & {
    workloads: Omit<WorkloadStatus, "uid" | "stamp">[];
  };
}

export interface ExplainedEvent {
  time: string;
  type: string;
  reason: string;
  message: string;
}

export interface Advice {
  /** Synced when there is nothing to do. */
  reason: string;
  message: string;
  command?: string;
}
