/** What a binding restarts, and what its status says of that: the types between finding workloads, deciding, and stamping. No I/O. */

import type { FieldPath } from "../apimachinery/field-path.ts";
import { idOf, type ObjectRef, type Version } from "../apimachinery/objects.ts";
import type { Workload } from "../workloads/workload.ts";
import type { SecretBinding, StoredStatus } from "./binding.ts";

export type RolloutSpec = NonNullable<SecretBinding["spec"]["rollout"]>;
export type RolloutStatus = NonNullable<StoredStatus["rollout"]>;
export type Pending = NonNullable<RolloutStatus["pending"]>;
export type WorkloadStatus = NonNullable<Pending["workloads"]>[number];

/** The field manager of every stamp, whichever binding makes it. */
export const ROLLOUT_MANAGER = "inlay-rollout";

/** Digests by what they are of: `bucket/accessKeyID`, or `bucket/*` for all keys of a source. */
export type Digests = Readonly<Record<string, string>>;

export const digestId = (source: string, key: string): string => `${source}/${key}`;

/** Which workloads restart together: of a step, or of a rollout without any. */
export interface Group extends Pick<RolloutSpec, "consumersOf" | "kinds" | "ownedByTargets" | "targets"> {
  name?: string;
  timeout?: string;
  onFailure: "Halt" | "Continue";
}

/** The steps of a rollout; of one without, itself: there a workload that fails holds no other back. */
export const groupsOf = (rollout: RolloutSpec): readonly Group[] =>
  rollout.steps ?? [{ ...rollout, onFailure: "Continue" }];

/** A group of workloads that waits for those before it. */
export interface Step {
  /** Undefined for the one of a binding without steps. */
  name: string | undefined;
  timeoutMs: number;
  onFailure: "Halt" | "Continue";
}

/** A workload that restarts for this binding. */
export interface Dependent {
  ref: ObjectRef;
  version: Version;
  workload: Workload;
  /** The field that a restart changes. */
  stampAt: FieldPath;
  /** That is none of a pod template's, but one that its controller restarts it on. */
  isRestartField: boolean;
  /** Its step's place among the steps. */
  step: number;
  /** The digests that it restarts for. */
  uses: ReadonlySet<string>;
}

/** Why nothing restarts at the moment, and when to look again, in milliseconds; undefined where an event tells. */
export interface Hold {
  reason: string;
  message: string;
  againMs?: number;
}

export const dependentId = ({ ref }: Pick<Dependent, "ref">): string => idOf(ref);

/** What happened in a rollout, for events and metrics. `changed` are the digests' ids. */
export type RolloutEvent =
  | { what: "began"; workloads: number; changed: readonly string[] }
  | { what: "done"; dependent: Dependent /** What is left to do. */; message?: string }
  | { what: "failed"; dependent: Dependent; message: string }
  | { what: "ended"; workloads: number /** Since the change was noticed. */; seconds: number }
  | { what: "renewed" };
