/** The types that finding workloads, deciding and restarting share. No I/O. */
import type { FieldPath } from "../apimachinery/field-path.ts";
import type { ObjectRef } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { ConditionReason } from "../apimachinery/reasons.ts";
import type { CachedObject } from "../cache/cached-object.ts";
import type { Workload } from "../workloads/workload.ts";

/** A group of workloads that waits for the groups before it. */
export interface Step {
  /** Undefined for the single group of a binding without steps. */
  name: string | undefined;
  timeoutMs: number;
  onFailure: "Halt" | "Continue";
}

/** A workload that restarts for this binding. */
export interface Dependent {
  ref: ObjectRef;
  version: CachedObject;
  workload: Workload;
  /** The field that a restart changes. */
  stampAt: FieldPath;
  /** The field is not in a pod template: the workload's controller restarts it when the field changes. */
  isRestartField: boolean;
  /** The position of its step. */
  step: number;
  /** The ids of the digests that it restarts for, sorted. Workloads that restart for the same ones share them. */
  uses: ReadonlySet<string>;
  /** The Secrets and ConfigMaps from which its pods read the values; undefined if they may get them in another way. */
  reads?: readonly ObjectRef[] | undefined;
  /** If restartOn has SourceDeleted: the sources without which its pods can't start. */
  required?: ReadonlySet<string>;
}

/** Why a namespace can't be known or changed. Later steps wait for it; other namespaces don't. */
export interface NamespaceProblem {
  namespace: string;
  /** The position of the first step that it affects. */
  step: number;
  problem: Problem;
}

/** Why nothing restarts at the moment, and after how many ms to reconcile again; undefined if an event requeues the binding. */
export interface RolloutBlock {
  reason: ConditionReason;
  message: string;
  requeueAfterMs?: number;
  /** When it ends, in ms, if that is known. */
  endsAt?: number;
}

/** What happened in a rollout, for events and metrics. `changed` are the ids of digests. */
export type RolloutEvent =
  | { what: "began"; workloads: number; changed: readonly string[] }
  | { what: "held"; dependent: Dependent; message: string /** What its pods wait for. */ }
  | { what: "failed"; reason: "RolloutFailed" | "RestartReverted"; dependent: Dependent; message: string }
  | { what: "younger"; dependent: Dependent; changed: readonly string[] }
  | { what: "stopped"; dependent: Dependent; message: string }
  | { what: "ended"; workloads: number /** Since the change was noticed. */; seconds: number }
  | { what: "renewed" };
