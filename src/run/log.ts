/** What happened comes in, lines of JSON go out on stdout. Nothing that is logged holds a value: see model/secret-value.ts. */
import { type Logger, pino } from "pino";

export type Log = Pick<Logger, "debug" | "info" | "warn" | "error">;

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

export function createLog(level: LogLevel): Log {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
}
