/** Finds out for how many columns to print text. */

/** The width of the terminal, or COLUMNS. `Infinity` for a pipe or file, so that programs find whole lines. */
export function terminalWidth(
  { isTTY, columns }: Pick<NodeJS.WriteStream, "isTTY" | "columns">,
  { COLUMNS = "" }: NodeJS.ProcessEnv,
): number {
  if (/^[1-9]\d{0,5}$/.test(COLUMNS)) return Number(COLUMNS);
  // A terminal that does not know its width has 0 columns.
  return isTTY && columns > 0 ? columns : Number.POSITIVE_INFINITY;
}
