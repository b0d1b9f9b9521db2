/** What `inlay explain` tells of a binding: the shape of its JSON, which others read too. Never a value. Types only. */
import type { Condition } from "../api/binding.ts";

/** Whether something is there, as the user at hand sees it; the message says why he can't, or what is the matter. */
export interface Seen {
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
  };
  account: Seen & { name: string };
  sources: SourceSeen[];
  targets: TargetSeen[];
  rollout?: RolloutSeen;
  conditions: Condition[];
  /** The last ones, the newest last. */
  events: EventSeen[];
  /** Why there are no events to see. */
  eventsUnreadable?: string;
  /** The first thing that stands in the way, and what to do about it. */
  advice: Advice;
}

export interface SourceSeen extends Seen {
  /** As fields and templates call it. */
  source: string;
  kind: string;
  namespace?: string;
  name: string;
  optional: boolean;
  resourceVersion?: string;
  /** What the fields take of it: keys, paths of fields, or `*` for all. `present` is left out where it can't be known. */
  uses: { of: string; present?: boolean }[];
  /** Of a source of another namespace: whether a SecretGrant there lets the binding read it, and which. */
  grants?: Seen & { by: string[] };
}

export interface TargetSeen {
  apiVersion: string;
  kind: string;
  /** Whether it is what a selector matches. */
  selects: boolean;
  /** Whether the binding makes it. */
  makes: boolean;
  fields: { path: string; from: string[] }[];
  objects: ObjectSeen[];
  /** How many more objects it has, which are not looked at. */
  more: number;
  message?: string;
}

export interface ObjectSeen extends Seen {
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

export interface RolloutSeen {
  suspended: boolean;
  /** In words: which workloads restart. */
  restarts: string[];
  /** How many rollouts have ended. */
  revision?: number;
  /** The values that are compared, such as bucket/accessKeyID. Never the digests. */
  compares: string[];
  /** When the last one began. */
  last?: string;
  pending?: {
    since: string;
    began?: string;
    reason: string;
    message: string;
    workloads: {
      apiVersion: string;
      kind: string;
      namespace: string;
      name: string;
      step?: string;
      state: string;
      since?: string;
      message?: string;
    }[];
  };
}

export interface EventSeen {
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
