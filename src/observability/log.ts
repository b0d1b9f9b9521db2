/** Writes log lines as JSON to stdout. No logged field contains a value: see apimachinery/secret-value.ts. */
import { pino } from "pino";

/** Each function writes one line: its fields, and a text. */
export type Log = Readonly<Record<"debug" | "info" | "warn" | "error", (fields: object, text: string) => void>>;

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

export function createLog(level: LogLevel): Log {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
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
