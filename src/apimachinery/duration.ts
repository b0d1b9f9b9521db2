/** Parses durations in Go's notation, such as 1h30m, to milliseconds. Pure. */
import { quoted } from "./objects.ts";
import { Problem } from "./problem.ts";

const MS: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 1e-3, µs: 1e-3, μs: 1e-3, ns: 1e-6 };
const PART = "(\\d+(?:\\.\\d*)?|\\.\\d+)(h|ms|m|s|us|µs|μs|ns)";
const PARTS = new RegExp(PART, "g");
const DURATION = new RegExp(`^(?:0|(?:${PART})+)$`);
/** The longest duration in Go: about 292 years. */
const MAX_MS = 2 ** 63 / 1e6;

/** Throws Problem("InvalidBinding") for an invalid duration; `field` names its field. */
export function parseDuration(text: string, field = "a duration"): number {
  let ms = DURATION.test(text) ? 0 : Number.NaN;
  // PARTS runs only on valid text: on other text, its time grows with the square of the length.
  if (ms === 0) for (const [, number, unit = ""] of text.matchAll(PARTS)) ms += Number(number) * (MS[unit] ?? 0);
  if (ms <= MAX_MS) return Math.round(ms);
  const what = `${quoted(text)} is not a duration`;
  throw new Problem("InvalidBinding", { at: [field], what: `${what}; write, for example, 45s, 10m or 1h30m` });
}

/** The milliseconds of a header Retry-After, which has seconds or a date. Undefined for none, and for a time in the past. */
export function retryAfterMs(header: unknown): number | undefined {
  if (typeof header !== "string") return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return ms > 0 ? ms : undefined;
}
