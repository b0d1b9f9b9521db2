/** Suggests existing names for a misspelt one. */

const MAX_NAMES = 8;
/** Names of fields are seldom longer. A key in a path may be. */
const MAX_LENGTH = 64;

/** Lists the existing fields, the most similar first. */
export function suggestNames(parent: string, key: string, names: readonly string[]): string {
  const nearest = closestName(key, names);
  return `${nearest === undefined ? "" : `did you mean ${nearest}? `}${listNames(parent, key, names)}`;
}

/** The name that differs from the key only by case or a few letters; undefined if no name is that similar. */
export function closestName(key: string, names: readonly string[]): string | undefined {
  const [nearest] = byDistance(key, names);
  // A name of two letters with two other letters is another name.
  return nearest !== undefined && nearest[0] <= (key.length < 3 ? 1 : 2) ? nearest[1] : undefined;
}

/** `parent has a, b, and others`: the names that exist, the most similar first. */
export function listNames(parent: string, key: string, names: readonly string[]): string {
  if (names.length === 0) return `${parent} has no fields`;
  const listed = byDistance(key, names).slice(0, MAX_NAMES);
  return `${parent} has ${listed.map(([, name]) => name).join(", ")}${names.length > MAX_NAMES ? ", and others" : ""}`;
}

function byDistance(key: string, names: readonly string[]): (readonly [number, string])[] {
  const beginning = key.slice(0, MAX_LENGTH).toLowerCase();
  return names
    .map((name) => [distance(beginning, name.slice(0, MAX_LENGTH).toLowerCase()), name] as const)
    .sort(([p], [q]) => p - q);
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
