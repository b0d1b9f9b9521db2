/** The result of `inlay explain`: the shape of its JSON, which other programs read too. Contains no values. Types only. */
import type { Condition, Status } from "../api/binding.ts";
import type { Pending, RolloutStatus, WorkloadStatus } from "../api/rollout.ts";
import type { Advice } from "../apimachinery/problem.ts";

/** Whether an object exists, as far as the user may see. The message says why it can't be read, or what is wrong. */
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
    /** From the labels of a composed binding. */
    madeBy?: { composition: string; claim: string };
  };
  account: ReadState & { name: string };
  sources: SourceExplanation[];
  targets: TargetExplanation[];
  /** On the selection of targets, from the status. */
  notes?: string[];
  rollout?: RolloutExplanation;
  conditions: Condition[];
  /** The first problems, from the status. */
  problems?: NonNullable<Status["problems"]>;
  /** The commands that grant all permissions that the binding's account lacks, as the controller found out. */
  missingPermissions?: string[];
  /** The last events, the newest last. */
  events: ExplainedEvent[];
  /** The reason why events can't be read. */
  eventsUnreadable?: string;
  /** The first problem, and how to fix it. Its reason is Synced when there is nothing to do. */
  advice: Advice;
}

export interface SourceExplanation extends ReadState {
  /** The name that fields and templates use. */
  source: string;
  kind: string;
  namespace?: string;
  name: string;
  optional: boolean;
  resourceVersion?: string;
  /** What the fields use of it: keys, paths of fields, or `*` for all. `present` is omitted where it can't be known. */
  uses: { key: string; present?: boolean }[];
  /** For a source in a store outside of the cluster: what it reads, such as `data kv/registry/s3`, and the state of its connection. */
  store?: {
    /** The product, such as `Vault`. */
    product: string;
    reads: string;
    /** The condition Ready of the connection. Omitted if there is none, or it can't be read. */
    ready?: Pick<Condition, "status" | "reason" | "message">;
    /** The version of the server. */
    version?: string;
  };
  /**
   * For a source that needs a SecretGrant: whether one permits the binding to read it, and which. The message says if the answer relies on
   * the binding's label for its composition, which the controller does not use.
   */
  grants?: ReadState & { names: string[] };
}

/** How a binding writes a target. */
export interface WayOfTarget {
  /** Whether the binding creates it. */
  creates: boolean;
  /** With `creates`: which existing objects the binding adopts. */
  adopts?: "Equal" | "Any";
  /** It is written after the rollout: when every workload has rolled out for the values. */
  when?: "AfterRollout";
}

export interface TargetExplanation extends WayOfTarget {
  apiVersion: string;
  kind: string;
  /** Whether a selector matches it. */
  selects: boolean;
  fields: { path: string; from: string[] }[];
  objects: ObjectExplanation[];
  /** How many more objects it has, which were not read. */
  more: number;
  message?: string;
}

export interface ObjectExplanation extends ReadState {
  namespace?: string;
  name: string;
  /** The target's entry in the binding's status. */
  status?: {
    reason: string;
    message?: string;
    /** Readable copies. */
    readablePaths?: string[];
  };
  fields: {
    path: string;
    /** Whether the record in the status lists the field as owned. */
    held: boolean;
    /** The field managers that own it; omitted where they can't be read. */
    managers?: string[];
  }[];
}

/** `revision` counts the completed rollouts; `lastStartTime` is when the last rollout began. */
export interface RolloutExplanation extends Partial<Pick<RolloutStatus, "revision" | "lastStartTime">> {
  suspended: boolean;
  /** Which workloads restart, in words. */
  restarts: string[];
  /** The compared values, such as bucket/accessKeyID. Never the digests. */
  trackedValues: string[];
  /** The namespaces whose workloads can't be listed. */
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
