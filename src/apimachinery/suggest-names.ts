/** Suggests existing names for a misspelt one. */

const MAX_NAMES = 8;
/** Names of fields are seldom longer. A key in a path may be. */
const MAX_LENGTH = 64;

/** Lists the existing fields, the most similar first. */
export function suggestNames(parent: string, key: string, names: readonly string[]): string {
  if (names.length === 0) return `${parent} has no fields`;
  const beginning = key.slice(0, MAX_LENGTH).toLowerCase();
  const byDistance = names.map((name) => [distance(beginning, name.slice(0, MAX_LENGTH).toLowerCase()), name] as const);
  byDistance.sort(([p], [q]) => p - q);
  const [nearest] = byDistance;
  const listed = byDistance.slice(0, MAX_NAMES).map(([, name]) => name);
  const guess = nearest !== undefined && nearest[0] <= 2 ? `did you mean ${nearest[1]}? ` : "";
  return `${guess}${parent} has ${listed.join(", ")}${names.length > MAX_NAMES ? ", and others" : ""}`;
}

/** The number of letters to add, remove or change to get from one text to the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...from].entries()) {
    row = row.reduce<number[]>((next, above, column) => {
      if (column === 0) return [line + 1];
      const changed = (row[column - 1] as number) + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(changed, above + 1, (next[column - 1] as number) + 1));
      return next;
    }, []);
  }
  return row.at(-1) as number;
}
