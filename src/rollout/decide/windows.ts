/**
 * Maintenance windows come in: when each opens, as a cron schedule with a time zone, and how long it is open. Whether one is
 * open at a time goes out, and if none is, when the next one opens. Pure.
 */
import { Cron } from "croner";
import { parseDuration } from "../../apimachinery/duration.ts";
import { Problem } from "../../apimachinery/problem.ts";

export interface Window {
  /** Minute, hour, day of month, month and day of week, in the time zone. */
  readonly schedule: string;
  /** In real time, whatever is done to clocks meanwhile. */
  readonly duration: string;
  /** A name of the IANA database; UTC without it. */
  readonly timeZone?: string;
}

type WindowState = { readonly open: true } | { readonly open: false; readonly opensAt: number };

/**
 * At a time in milliseconds. Without windows it is always open. Throws Problem("InvalidBinding") for a mistake in any of
 * them, also while another one is open: it should be told before it matters.
 */
export function windowAt(windows: readonly Window[], now: number): WindowState {
  // Looked for forwards from what would be over: who began and who is next are then told by one rule.
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
  throw new Problem("InvalidBinding", `${at}.duration: a window of no time never opens; write how long it is, like 2h`);
}

/** The first one after a time. */
function firstStart({ schedule, timeZone = "UTC" }: Window, after: number, at: string): number {
  const start = cronOf(schedule, checkedZone(timeZone, at), at).nextRun(new Date(after));
  if (start !== null) return start.getTime();
  const never = `${JSON.stringify(schedule)} is on a day that never comes`;
  throw new Problem("InvalidBinding", `${at}.schedule: ${never}; write one that does, such as "0 2 * * 1-5"`);
}

/**
 * As with Vixie's cron: a fixed time that is left out when clocks are put forward is at once after the gap, and one that is
 * there twice is the first one. What is every so many minutes or hours goes by real ones.
 */
function cronOf(schedule: string, timezone: string, at: string): Cron {
  try {
    // It would be taken for a date.
    if (schedule.includes(":")) throw new Error("it has a colon");
    return new Cron(schedule, { timezone, mode: "5-part", fixedTimeRule: "no-wildcard" });
  } catch {
    const fields = "write minute, hour, day of month, month and day of week";
    const what = `${JSON.stringify(schedule)} is no cron schedule`;
    throw new Problem("InvalidBinding", `${at}.schedule: ${what}; ${fields}, such as "0 2 * * 1-5"`);
  }
}

/** Spelled as there, so that there are only so many: the library keeps something for each. */
const knownZones = new Set<string>();

function checkedZone(timeZone: string, at: string): string {
  if (knownZones.has(timeZone)) return timeZone;
  try {
    if (/^[+-]/.test(timeZone)) throw new Error("it is an offset, which knows no summer");
    const known = new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
    knownZones.add(known);
    return known;
  } catch {
    const what = `${JSON.stringify(timeZone)} is no time zone`;
    throw new Problem("InvalidBinding", `${at}.timeZone: ${what}; write a name such as Europe/Berlin or UTC`);
  }
}
