/** The outcome of one target in one reconcile: the record for the status, and the problem if any. Types only. */
import type { TargetStatus } from "../api/binding.ts";
import type { ObjectRef, Version } from "../apimachinery/objects.ts";
import type { Problem } from "../apimachinery/problem.ts";
import type { ReadableCopies } from "../transform/plan-types.ts";

export interface TargetOutcome {
  record: TargetStatus;
  problem?: Problem;
  /** Why the selection can't mean this object now. Its record stays, but it counts neither as synced nor as failed. */
  excluded?: Problem;
  /** Information for users although there is no problem, such as omitted optional fields. */
  note?: string;
  /** In the status too, and reported by an event when it begins. */
  readable?: ReadableCopies;
  /**
   * The object after the sync: the version of the write, or of the read if there was nothing to write. `values` is a
   * digest of its values, set if that suffices to decide the next write without a read.
   */
  applied?: { ref: ObjectRef; version: Version; values?: string };
  /** When to requeue although nothing changed, in milliseconds. */
  requeueAfterMs?: number;
}

/** Permissions that the account of a binding lacks. */
export interface LackingAccess {
  /** They grant all of them, unless `isCut`. */
  commands: readonly string[];
  /** There may be more: a status has no room for them, or not every permission was reviewed. */
  isCut: boolean;
  /** In words, such as `patch on configmaps/app`. */
  words: readonly string[];
  /** Other namespaces that do not exist, if the account may know that. */
  missingNamespaces: readonly string[];
}

/** Information about all targets together. */
export interface Overview {
  /** The permissions that the account lacks, if one was missing. */
  lacking?: LackingAccess | undefined;
  /** Targets whose objects can't be determined, and why. */
  unresolved: readonly { target: { apiVersion: string; kind: string }; problem: Problem }[];
  notes: readonly string[];
  /** Whether everything was read since the annotation inlay.dev/refresh changed. */
  isRefreshed?: boolean;
}
