/** Decides from the pace settings and maintenance windows of a binding whether a rollout has to wait, and until when. Pure. */
import { Cron } from "croner";
import type { Pending, RolloutSpec } from "../../api/rollout.ts";
import { parseDuration } from "../../apimachinery/duration.ts";
import { quoted } from "../../apimachinery/objects.ts";
import { attemptSync, Problem } from "../../apimachinery/problem.ts";
import type { ConditionReason } from "../../apimachinery/reasons.ts";
import type { RolloutBlock } from "../types.ts";

export interface Window {
  /** Minute, hour, day of month, month and day of week, in the time zone. */
  readonly schedule: string;
  /** Real time, whatever happens to clocks meanwhile. */
  readonly duration: string;
  /** A name of the IANA database; UTC by default. */
  readonly timeZone?: string;
}

type WindowState = { readonly open: true } | { readonly open: false; readonly opensAt: number };

/**
 * `now` is in ms. Without windows it is always open. Throws Problem("InvalidBinding") for a mistake in any window, also while
 * another one is open.
 */
export function windowAt(windows: readonly Window[], now: number): WindowState {
  // The search begins where an open window would have started: one rule finds an open window and the next one.
  const starts = windows.map((window, position) => {
    const at = `rollout.windows[${position}]`;
    return firstStart(window, now - durationOf(window, at), at);
  });
  if (starts.length === 0 || starts.some((start) => start <= now)) return { open: true };
  return { open: false, opensAt: Math.min(...starts) };
}

function durationOf({ duration }: Window, at: string): number {
  const ms = parseDuration(duration, `${at}.duration`);
  if (ms > 0) return ms;
  throw mistake(`${at}.duration`, "a window of length 0 never opens; set its length, such as 2h");
}

const mistake = (at: string, what: string) => new Problem("InvalidBinding", { at: [at], what });

/** The first start after a time, in ms. */
function firstStart({ schedule, timeZone = "UTC" }: Window, after: number, at: string): number {
  const start = cronOf(schedule, checkedZone(timeZone, at), at).nextRun(new Date(after));
  if (start !== null) return start.getTime();
  const never = `${quoted(schedule)} names a day that does not exist`;
  throw mistake(`${at}.schedule`, `${never}; write another schedule, such as "0 2 * * 1-5"`);
}

/**
 * As in Vixie's cron: a fixed time that clocks skip counts right after the gap, and a repeated time counts once, the first time.
 * Intervals of minutes or hours are in real time.
 */
function cronOf(schedule: string, timezone: string, at: string): Cron {
  try {
    // The library would parse it as a date.
    if (schedule.includes(":")) throw new Error("it has a colon");
    return new Cron(schedule, { timezone, mode: "5-part", fixedTimeRule: "no-wildcard" });
  } catch {
    const fields = "write minute, hour, day of month, month and day of week";
    const what = `${quoted(schedule)} is not a cron schedule`;
    throw mistake(`${at}.schedule`, `${what}; ${fields}, such as "0 2 * * 1-5"`);
  }
}

/** In their official spelling, which limits how many the library caches. */
const knownZones = new Set<string>();

function checkedZone(timeZone: string, at: string): string {
  if (knownZones.has(timeZone)) return timeZone;
  try {
    if (/^[+-]/.test(timeZone)) throw new Error("it is an offset without daylight saving time");
    const known = new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
    knownZones.add(known);
    return known;
  } catch {
    const what = `${quoted(timeZone)} is not a time zone`;
    throw mistake(`${at}.timeZone`, `${what}; write a name such as Europe/Berlin or UTC`);
  }
}

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
