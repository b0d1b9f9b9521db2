/**
 * The reasons that conditions and events have beside those of a Problem. docs/troubleshooting.md has an entry for each reason; a
 * test compares the two lists.
 */
import type { Reason } from "./problem.ts";

/** Reasons of conditions that report a state, not a problem. */
export const STATE_REASONS = [
  "Accepted",
  "BindingsNotReady",
  "Debounce",
  "MaxConcurrent",
  "MinInterval",
  "OutsideWindow",
  "Pending",
  "PolicyMissing",
  "Ready",
  "Reconciling",
  "RestartBlocked",
  "RestartReverted",
  "RolledOut",
  "RollingOut",
  "RolloutFailed",
  "Suspended",
  "Synced",
  "TargetsNotReady",
  "TargetsNotSynced",
  "TokenReadable",
] as const;

/** Reasons that only events have. */
export const EVENT_REASONS = [
  "Adopted",
  "BaselineReset",
  "Created",
  "InvalidAnnotation",
  "NoPodDisruptionBudget",
  "NoReadinessProbe",
  "PodsNotReplaced",
  "ReadableCopies",
  "Removed",
  "RestartNotNeeded",
  "Restarted",
  "Retained",
  "RolloutStarted",
  "Written",
] as const;

/** Reasons of objects that wait, and have no problem. */
export const WAITING_REASONS: readonly string[] = ["Pending", "RolloutPending", "Reconciling"];

export type ConditionReason = Reason | (typeof STATE_REASONS)[number];
export type EventReason = ConditionReason | (typeof EVENT_REASONS)[number];

/** A reason that Inlay wrote to a status before, where the CRD only says that it is a string. */
export const storedReason = (reason: string): ConditionReason => reason as ConditionReason;
