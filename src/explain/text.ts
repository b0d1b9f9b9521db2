/**
 * Formats text for the width of a terminal. Removes control characters, so that text from the cluster, such as an event or the name of a field
 * manager, can't control the reader's terminal. Pure.
 */

import { plain } from "../apimachinery/plain.ts";
import type { Advice } from "../apimachinery/problem.ts";

const GAP = "  ";
/** Columns become narrower only if the table does not fit otherwise. */
const NARROWEST = 12;
/** In a narrower terminal, the terminal wraps the lines. */
const MIN_WIDTH = 40;

/** A line, or a part of the text that depends on the width. */
export type Part = string | ((width: number) => string[]);

/** The lines. `Infinity` wraps nothing. */
export function layOut(parts: readonly Part[], width: number): string[] {
  return parts.flatMap((part) => (typeof part === "string" ? [part] : part(Math.max(width, MIN_WIDTH))));
}

/** The lines of a whole text, without an empty line at its beginning. */
export const layOutWhole = (parts: readonly Part[], width: number): string[] =>
  layOut(parts[0] === "" ? parts.slice(1) : parts, width);

/** A heading and its indented parts. */
export function section(heading: string, parts: readonly Part[], indent = 2): Part[] {
  return parts.length === 0 ? [] : ["", heading, ...indented(parts, indent)];
}

export function indented(parts: readonly Part[], indent: number): Part[] {
  const shift = (line: string) => (line === "" ? "" : " ".repeat(indent) + line);
  return parts.map((part) =>
    typeof part === "string" ? shift(part) : (width: number) => part(width - indent).map(shift),
  );
}

/** A text that is wrapped. */
export const paragraph =
  (text: string): Part =>
  (width) =>
    fold(text, width);

/** What is wrong. A command stays on one line, so that it can be copied. */
export const adviceLines = (before: string, { message, command }: Pick<Advice, "message" | "command">): Part[] => [
  paragraph(before + message),
  ...(command === undefined ? [] : [plain(command)]),
];

/** Empty columns are omitted, and so is a head without rows. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): Part[] {
  return rows.length === 0 ? [] : [(width) => tableLines(head, rows, width)];
}

/** Columns as wide as their content. If the table is too wide, the widest columns are wrapped. */
function tableLines(head: readonly string[], rows: readonly (readonly string[])[], width: number): string[] {
  const used = head.map((_, column) => rows.some((row) => (row[column] ?? "") !== ""));
  const cells = [head, ...rows].map((row) => head.map((_, at) => plain(row[at] ?? "")).filter((_, at) => used[at]));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const room = width - GAP.length * (widths.length - 1);
  const narrowest = Math.max(1, Math.min(NARROWEST, Math.floor(room / widths.length)));
  for (let widest = Math.max(...widths); sum(widths) > room && widest > narrowest; widest = Math.max(...widths)) {
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return cells.flatMap((row) => {
    const folded = row.map((cell, column) => fold(cell, widths[column] as number));
    const height = Math.max(...folded.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) =>
      folded
        .map((lines, column) => (lines[line] ?? "").padEnd(widths[column] as number))
        .join(GAP)
        .trimEnd(),
    );
  });
}

/** Wraps a text: between words, else after a separator in a path or name, else within a word. */
export function fold(text: string, width: number): string[] {
  const lines: string[] = [];
  let rest = plain(text);
  while (rest.length > width) {
    const separator = Math.max(...SEPARATORS.map((each) => rest.lastIndexOf(each, width - 1))) + 1;
    const ends = [rest.lastIndexOf(" ", width), separator, width];
    const end = ends.find((each) => each > width / 3) ?? width;
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

const SEPARATORS = ["/", ".", ",", "-", "]"];

/** The age of a Kubernetes timestamp, such as `3m`. */
export function ageOf(time: string | undefined, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time ?? "")) / 1000));
  if (Number.isNaN(seconds)) return "";
  const units = [
    ["d", 86_400],
    ["h", 3_600],
    ["m", 60],
  ] as const;
  const [unit, length] = units.find(([, length]) => seconds >= 2 * length) ?? ["s", 1];
  return `${Math.floor(seconds / length)}${unit}`;
}

const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
