/** Writes log lines to stdout: as text on a terminal, else as JSON. No logged field contains a value: see apimachinery/secret-value.ts. */
import { styleText } from "node:util";
import { pino } from "pino";
import { plain } from "../apimachinery/plain.ts";

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
  // Without colors if the output is no terminal, or NO_COLOR is set.
  const colored: Style = (color, text) => styleText(color, text, { stream: process.stdout });
  return pino(options, { write: (line: string) => process.stdout.write(`${textOf(line, colored)}\n`) });
}

type Color = "dim" | "red" | "yellow";
type Style = (color: Color, text: string) => string;
const colors: Readonly<Record<string, Color>> = { debug: "dim", warn: "yellow", error: "red" };

/** A line of JSON as text: the time of day in UTC, the level, the text, and the other fields. */
export function textOf(line: string, colored: Style = (_, text) => text): string {
  const { time, level, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const shown = Object.entries(fields).map(([name, value]) => {
    const isPlain = typeof value === "string" && /^[^\s"]+$/.test(value);
    return `${name}=${isPlain ? value : JSON.stringify(value)}`;
  });
  const color = colors[String(level)];
  const name = String(level).toUpperCase().padEnd(5);
  const rest = plain([msg, ...shown].join(" "));
  return `${String(time).slice(11, 19)}Z ${color === undefined ? name : colored(color, name)} ${rest}`;
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
