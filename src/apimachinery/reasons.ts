/**
 * The reasons that conditions and events have beside those of a Problem. docs/troubleshooting.md has an entry for each reason; a
 * test compares the two lists.
 */
import { catalogue, type FixedBy, type Reason } from "./problem.ts";

/** Reasons of conditions that report a state, not a problem, with who ends the state. */
const states = {
  Accepted: "Itself",
  BindingsNotReady: "Itself",
  // The bindings have waited long enough already.
  BindingsStalled: "Edit",
  ClaimsNotVisible: "Itself",
  Debounce: "Itself",
  MaxConcurrent: "Itself",
  MinInterval: "Itself",
  OutsideWindow: "Itself",
  Pending: "Itself",
  PolicyMissing: "User",
  Ready: "Itself",
  Reconciling: "Itself",
  // Some causes end by themselves, such as a Job that runs.
  RestartBlocked: "Itself",
  // A rollout waits for its workloads before it fails.
  RestartReverted: "Edit",
  RolledOut: "Itself",
  RollingOut: "Itself",
  RolloutFailed: "Edit",
  Suspended: "Itself",
  Synced: "Itself",
  TargetsNotReady: "Itself",
  TargetsNotSynced: "Itself",
  TokenReadable: "Itself",
} as const satisfies Record<string, FixedBy>;

type StateReason = keyof typeof states;
export const STATE_REASONS = Object.keys(states) as readonly StateReason[];

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

export type ConditionReason = Reason | StateReason;
export type EventReason = ConditionReason | (typeof EVENT_REASONS)[number];

/** A reason that Inlay wrote to a status before, where the CRD only says that it is a string. */
export const storedReason = (reason: string): ConditionReason => reason as ConditionReason;

const FIXED_BY: Readonly<Record<string, FixedBy>> = {
  ...Object.fromEntries(Object.entries(catalogue).map(([reason, entry]) => [reason, entry.fixedBy])),
  ...states,
};
const URGENCY: readonly FixedBy[] = ["Edit", "User", "Itself"];

/** Who ends what has this reason. A stored reason may be of another version of Inlay. */
export const fixedBy = (reason: string): FixedBy => FIXED_BY[reason] ?? "Itself";

/** The first of those that need a user most. So which one is reported does not change with those that end by themselves. */
export function mostUrgent<T>(all: readonly T[], reasonOf: (each: T) => string): T | undefined {
  const rankOf = (each: T) => URGENCY.indexOf(fixedBy(reasonOf(each)));
  return all.reduce<T | undefined>(
    (best, each) => (best === undefined || rankOf(each) < rankOf(best) ? each : best),
    undefined,
  );
}
