/** What became of one target in one reconcile: the record for status, and what stood in the way. Types only. */
import type { TargetStatus } from "./binding.ts";
import type { ObjectRef } from "./kube-object.ts";
import type { Problem } from "./problem.ts";

export interface TargetOutcome {
  record: TargetStatus;
  problem?: Problem;
  /** What is to be known although all is well: which optional fields were left out. */
  note?: string;
  /** The object that was written just now, and the version that the write made. */
  written?: { ref: ObjectRef; version: { uid: string; resourceVersion: string; generation: number | undefined } };
  /** When to look again although nothing changed, in milliseconds. */
  againMs?: number;
}
