/** What a binding says of its pace comes in; why a rollout has to wait, and until when, goes out. Pure. */
import type { Pending, RolloutSpec } from "../../api/rollout.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { attemptSync } from "../../apimachinery/problem.ts";
import type { ConditionReason } from "../../apimachinery/reasons.ts";
import type { RolloutBlock } from "../types.ts";
import { windowAt } from "./windows.ts";

/** Without maxDebounce, a value that never rests holds a rollout back for so many times as long. */
const MAX_DEBOUNCES = 10;
/** Timers of Node are off by a millisecond or so. */
const SLACK_MS = 5;

/** While whoever installed Inlay has stopped all rollouts. */
export const STOPPED: RolloutBlock = {
  reason: "Suspended",
  message:
    "the installation restarts nothing at the moment (rollouts.suspend in its configuration); ask whoever installed Inlay",
};

/** Undefined when workloads may be restarted now. Throws Problem("InvalidBinding") for what is no duration, cron or time zone. */
export function blockOf(
  spec: RolloutSpec,
  pending: Pending,
  last: string | undefined,
  now: number,
): RolloutBlock | undefined {
  if (spec.suspend) return { reason: "Suspended", message: "spec.rollout.suspend is true; set it to false to go on" };
  const since = Date.parse(pending.lastRestartTime ?? pending.firstChangeTime);
  const changed = Date.parse(pending.lastChangeTime);
  const debounce = duration(spec.debounce, "debounce");
  const most = spec.maxDebounce === undefined ? debounce * MAX_DEBOUNCES : duration(spec.maxDebounce, "maxDebounce");
  // What has begun goes on with the values of now: a half-restarted group is worse than one more restart. But a value that
  // never rests restarts nothing oftener than that either.
  const quietAt = Math.min(changed + debounce, since + most);
  if (quietAt > now) return until("Debounce", "the values may change again", quietAt, now);
  if (pending.startTime === undefined && last !== undefined) {
    const at = Date.parse(last) + duration(spec.minInterval, "minInterval");
    if (at > now) return until("MinInterval", `the last rollout began at ${last}`, at, now);
  }
  const window = windowAt(spec.windows ?? [], now);
  if (window.open) return undefined;
  return until("OutsideWindow", "it is outside of spec.rollout.windows", window.opensAt, now);
}

/** What is wrong with it, told before it matters. */
export function wrongPace({ debounce, maxDebounce, minInterval, windows = [] }: RolloutSpec, now: number) {
  return attemptSync((): undefined => {
    for (const [field, text] of Object.entries({ debounce, maxDebounce, minInterval })) duration(text, field);
    windowAt(windows, now);
  });
}

function until(reason: ConditionReason, why: string, at: number, now: number): RolloutBlock {
  const time = new Date(at).toISOString();
  return { reason, message: `${why}; it goes on at ${time}`, requeueAfterMs: at - now + SLACK_MS };
}

const duration = (text: string | undefined, field: string) =>
  text === undefined ? 0 : parseDuration(text, `spec.rollout.${field}`);
