/** What rollouts are made of: the types between finding workloads, deciding, and restarting. No I/O. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import type { ObjectRef, Version } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { ConditionReason } from "../apimachinery/reasons.ts";
import type { Workload } from "../workloads/workload.ts";

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
  /** Where restartOn has SourceDeleted: the sources without which its pods can't start. */
  required?: ReadonlySet<string>;
}

/** Why nothing can be known or done in a namespace. The steps behind `step` wait for it; other namespaces don't. */
export interface NamespaceProblem {
  namespace: string;
  /** The first step that is concerned, by its place. */
  step: number;
  problem: Problem;
}

/** Why nothing restarts at the moment, and when to look again, in milliseconds; undefined where an event requeues the binding. */
export interface RolloutBlock {
  reason: ConditionReason;
  message: string;
  requeueAfterMs?: number;
}

/** What happened in a rollout, for events and metrics. `changed` are the digests' ids. */
export type RolloutEvent =
  | { what: "began"; workloads: number; changed: readonly string[] }
  | { what: "done"; dependent: Dependent /** What is left to do. */; message?: string }
  | { what: "failed"; dependent: Dependent; message: string }
  | { what: "ended"; workloads: number /** Since the change was noticed. */; seconds: number }
  | { what: "renewed" };
