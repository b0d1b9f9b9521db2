/** What happened comes in, lines of JSON go out on stdout. Nothing that is logged holds a value: see apimachinery/secret-value.ts. */
import { pino } from "pino";

/** Each writes one line: what it is about, and what happened. */
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
 * What may be logged of an error: the message where it is one of the catalogue, since those hold no value; of any other,
 * which is a bug of ours, its name and where it came from.
 */
export function describeError(error: unknown): { name: string; message?: string; stack?: string[] } {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, message, stack = "" } = error;
  if (name === "ApiError" || name === "Problem") return { name, message };
  // A message may have lines that look like frames.
  const frames = stack.replace(message, "").split("\n");
  return { name, stack: frames.filter((line) => /^ {4}at /.test(line)).map((line) => line.trim()) };
}
