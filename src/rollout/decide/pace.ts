/** Decides from the pace settings of a binding whether a rollout has to wait, and until when. Pure. */
import type { Pending, RolloutSpec } from "../../api/rollout.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { attemptSync } from "../../apimachinery/problem.ts";
import type { ConditionReason } from "../../apimachinery/reasons.ts";
import type { RolloutBlock } from "../types.ts";
import { windowAt } from "./windows.ts";

/** Without maxDebounce, a value that never stops changing delays a rollout for at most this many times debounce. */
const MAX_DEBOUNCES = 10;
/** Timers of Node may fire a millisecond early. */
const SLACK_MS = 5;

/** All rollouts of the installation are suspended. */
export const STOPPED: RolloutBlock = {
  reason: "Suspended",
  message:
    "the configuration of Inlay suspends all rollouts (rollouts.suspend); ask the administrator of Inlay in this cluster to resume them",
};

/** Undefined if workloads may restart now. Throws Problem("InvalidBinding") for an invalid duration, schedule or time zone. */
export function blockOf(
  spec: RolloutSpec,
  pending: Pending,
  last: string | undefined,
  now: number,
): RolloutBlock | undefined {
  if (spec.suspend)
    return { reason: "Suspended", message: "spec.rollout.suspend is true; set it to false to continue" };
  const since = Date.parse(pending.lastRestartTime ?? pending.firstChangeTime);
  const changed = Date.parse(pending.lastChangeTime);
  const debounce = duration(spec.debounce, "debounce");
  const most = spec.maxDebounce === undefined ? debounce * MAX_DEBOUNCES : duration(spec.maxDebounce, "maxDebounce");
  // A rollout that has begun continues with the present values: one more restart is better than a partly restarted group.
  // maxDebounce also limits how often a value that never stops changing restarts workloads.
  const quietAt = Math.min(changed + debounce, since + most);
  if (quietAt > now) return until("Debounce", "waiting for the values to stop changing", quietAt, now);
  if (pending.startTime === undefined && last !== undefined) {
    const at = Date.parse(last) + duration(spec.minInterval, "minInterval");
    if (at > now) return until("MinInterval", `the last rollout began at ${last}`, at, now);
  }
  const window = windowAt(spec.windows ?? [], now);
  if (window.open) return undefined;
  return until("OutsideWindow", "the time is outside of spec.rollout.windows", window.opensAt, now);
}

/** Finds invalid settings before they matter. */
export function wrongPace({ debounce, maxDebounce, minInterval, windows = [] }: RolloutSpec, now: number) {
  return attemptSync((): undefined => {
    for (const [field, text] of Object.entries({ debounce, maxDebounce, minInterval })) duration(text, field);
    windowAt(windows, now);
  });
}

function until(reason: ConditionReason, why: string, at: number, now: number): RolloutBlock {
  const time = new Date(at).toISOString();
  return { reason, message: `${why}; continues at ${time}`, requeueAfterMs: at - now + SLACK_MS, endsAt: at };
}

const duration = (text: string | undefined, field: string) =>
  text === undefined ? 0 : parseDuration(text, `spec.rollout.${field}`);
