/** Writes log lines to stdout: as text on a terminal, else as JSON. No logged field contains a value: see apimachinery/secret-value.ts. */
import { pino } from "pino";

/** Each function writes one line: its fields, and a text. */
export type Log = Readonly<Record<"debug" | "info" | "warn" | "error", (fields: object, text: string) => void>>;

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

export type LogFormat = "text" | "json";

export function createLog(level: LogLevel, format: LogFormat = process.stdout.isTTY ? "text" : "json"): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  if (format === "json") return pino(options);
  return pino(options, { write: (line: string) => process.stdout.write(`${textOf(line)}\n`) });
}

/** A line of JSON as text: the time of day in UTC, the level, the text, and the other fields. */
export function textOf(line: string): string {
  const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const shown = Object.entries(fields).map(([name, value]) => {
    const isPlain = typeof value === "string" && /^[^\s"]+$/.test(value);
    return `${name}=${isPlain ? value : JSON.stringify(value)}`;
  });
  return [String(time).slice(11, 19), String(level).toUpperCase().padEnd(5), msg, ...shown].join(" ");
}

/**
 * The parts of an error that may be logged: the message if the error is one of Inlay's own, since those contain no values; otherwise its
 * name and where it was thrown.
 */
export function describeError(error: unknown): { name: string; message?: string; stack?: string[] } {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, stack = "" } = error;
  if (name === "ApiError" || name === "Problem") return { name, message };
  // A message may contain lines that look like frames.
  const frames = stack.replace(message, "").split("\n");
  return { name, stack: frames.filter((line) => /^ {4}at /.test(line)).map((line) => line.trim()) };
}
