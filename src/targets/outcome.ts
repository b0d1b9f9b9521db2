/** What became of one target in one reconcile: the record for status, and what stood in the way. Types only. */
import type { TargetStatus } from "../api/binding.ts";
import type { ObjectRef, Version } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { ReadableCopies } from "../transform/plan-types.ts";

export interface TargetOutcome {
  record: TargetStatus;
  problem?: Problem;
  /** What is to be known although all is well: which optional fields were left out. */
  note?: string;
  /** Said in the note too; and by an event, when it begins. */
  readable?: ReadableCopies;
  /**
   * The object as it stands now: the version that a write made, or that was read where there was nothing to write; and what
   * tells the values in it from others, where that suffices to write the next ones.
   */
  applied?: { ref: ObjectRef; version: Version; values?: string };
  /** When to look again although nothing changed, in milliseconds. */
  requeueAfterMs?: number;
}

/** What is to be known of all targets together. */
export interface Overview {
  /** Why it can't be told which objects a target is. */
  unresolved: readonly { target: { apiVersion: string; kind: string }; problem: Problem }[];
  notes: readonly string[];
}
