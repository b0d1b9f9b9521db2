/**
 * Formats text of at most 120 columns. Removes control characters, so that text from the cluster, such as an event or the name of a field
 * manager, can't control the reader's terminal. Pure.
 */

export const WIDTH = 120;
const GAP = "  ";
const NARROWEST = 12;

/** A heading and its indented lines. */
export function section(heading: string, lines: readonly string[], indent = 2): string[] {
  if (lines.length === 0) return [];
  return ["", heading, ...lines.map((line) => (line === "" ? "" : " ".repeat(indent) + line))];
}

/**
 * Columns as wide as their content. If the table is too wide, the widest columns are wrapped. Empty columns are omitted, and so is a head
 * without rows.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[], width = WIDTH - 2): string[] {
  if (rows.length === 0) return [];
  const used = head.map((_, column) => rows.some((row) => (row[column] ?? "") !== ""));
  const cells = [head, ...rows].map((row) => head.map((_, at) => plain(row[at] ?? "")).filter((_, at) => used[at]));
  const widths = (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const room = width - GAP.length * (widths.length - 1);
  for (let widest = Math.max(...widths); sum(widths) > room && widest > NARROWEST; widest = Math.max(...widths)) {
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

/** Wraps a text at a number of columns, between words if possible. */
export function fold(text: string, width = WIDTH - 2): string[] {
  const lines: string[] = [];
  let rest = plain(text);
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    const end = space > width / 3 ? space : width;
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}

/** Without control characters of terminals. */
export const plain = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");

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
