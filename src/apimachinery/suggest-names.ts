/** Suggests existing names for a misspelt one. Pure. */

const MAX_NAMES = 8;
/** Names of fields are seldom longer. A key in a path may be. */
const MAX_LENGTH = 64;

/** Lists the existing fields, the most similar first. */
export function suggestNames(parent: string, key: string, names: readonly string[]): string {
  const nearest = similarName(key, names);
  return `${nearest === undefined ? "" : `did you mean ${nearest}? `}${listNames(parent, key, names)}`;
}

/** The name that is most like a misspelt one, whatever its case; undefined if none is close. */
export function similarName(wanted: string, names: Iterable<string>): string | undefined {
  const text = wanted.slice(0, MAX_LENGTH).toLowerCase();
  const most = text.length > 4 ? 2 : 1;
  let nearest: { name: string; letters: number } | undefined;
  for (const name of names) {
    // The difference in length is the least distance, and costs nothing.
    if (Math.abs(name.length - wanted.length) > most) continue;
    const letters = distance(text, name.slice(0, MAX_LENGTH).toLowerCase());
    if (letters <= most && (nearest === undefined || letters < nearest.letters)) nearest = { name, letters };
  }
  return nearest?.name;
}

/** `parent has a, b, and others`: the names that exist, the most similar first. */
export function listNames(parent: string, key: string, names: readonly string[]): string {
  if (names.length === 0) return `${parent} has no fields`;
  return firstNames(
    parent,
    byDistance(key, names).map(([, name]) => name),
  );
}

/** `parent has a, b, and others`: the first names as they are ordered. */
export const firstNames = (parent: string, names: readonly string[]): string =>
  `${parent} has ${names.slice(0, MAX_NAMES).join(", ")}${names.length > MAX_NAMES ? ", and others" : ""}`;

function byDistance(key: string, names: readonly string[]): (readonly [number, string])[] {
  const beginning = key.slice(0, MAX_LENGTH).toLowerCase();
  return names
    .map((name) => [distance(beginning, name.slice(0, MAX_LENGTH).toLowerCase()), name] as const)
    .sort(([p], [q]) => p - q);
}

/** The number of letters to add, remove, change or swap with the next one to get from one text to the other. */
function distance(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let line = 0; line < from.length; line++) {
    const letter = from[line];
    const next = [line + 1];
    for (let column = 1; column <= to.length; column++) {
      const isSwapped = letter === to[column - 2] && from[line - 1] === to[column - 1];
      const [left, above, diagonal] = [next[column - 1] as number, row[column] as number, row[column - 1] as number];
      const changed = diagonal + (letter === to[column - 1] ? 0 : 1);
      next.push(Math.min(changed, above + 1, left + 1, isSwapped ? (before[column - 2] as number) + 1 : changed));
    }
    [before, row] = [row, next];
  }
  return row.at(-1) as number;
}
